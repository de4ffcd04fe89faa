"""Arguments have PyTorch's names, in every overload, and its deprecated orders."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest

import tallow as tl
from tallow.core.factories import KEYWORDS
from tallow.functions import refused
from tallow.ops.table import aliases_of

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_agree  # noqa: E402 - imports torch

CALLS = """
x.std(False)
x.var(False)
m.std(x, False)
m.std_mean(x, True)[0]
m.var(x, unbiased=False)
x.add(2, x)
x.clone().add_(2, x)
m.add(x, 2, x)
x.sub(2, x)
m.addcmul(x, 2, x, x)
x.clone().addcmul_(2, x, x)
x.clone().addcdiv_(2, x, x+1)
m.addmm(2, x@x.T, 3, x, x.T)
m.addmm(2, x@x.T, x, x.T)
m.addmv(2, x[:,0], x, x[0])
m.baddbmm(2, (x@x.T)[None], x[None], x.T[None])
x.add(x, alpha=2)
x.view(size=(3,2))
x.view(dtype=m.int32)
x.reshape(shape=(3,2))
m.reshape(input=x, shape=(3,2))
x.expand(size=(2,2,3))
x.repeat(repeats=(2,1))
x.permute(dims=(1,0))
x.tile(dims=(2,))
m.tile(input=x, dims=(2,))
m.broadcast_to(input=x, size=(2,2,3))
x.broadcast_to(size=(2,2,3))
x.sum_to_size(size=(1,3))
x.flip(dims=(0,))
m.flip(input=x, dims=[0])
m.pow(self=2, exponent=x)
m.pow(input=x, exponent=2)
m.where(condition=x>1, input=x, other=0.0)
m.where(condition=x>1, self=1.0, other=x)
m.remainder(self=5, other=x+1)
m.bitwise_and(self=5, other=i)
m.float_power(self=2, exponent=x)
m.xlogy(self=2, other=x+1)
m.special.xlogy(self=2, other=x+1)
m.meshgrid(x[0], x[0], indexing=None)
m.swapaxes(x, axis0=0, axis1=1)
x.swapaxes(axis0=0, axis1=1)
m.transpose(input=x, dim0=0, dim1=1)
m.tensor_split(x, sections=2)
m.tensor_split(x, indices=(1,))
x.tensor_split(sections=2, dim=1)
m.tensor_split(input=x, indices=(1,), dim=1)
m.hsplit(x, sections=3)
m.hsplit(x, indices=(1,))
m.vsplit(input=x, sections=2)
m.dsplit(x[None], sections=3)
m.vdot(input=x[0], other=x[0])
x[0].vdot(other=x[0])
m.dot(input=x[0], tensor=x[0])
m.promote_types(type1=m.int32, type2=m.float32)
m.result_type(tensor=x, other=2)
m.linalg.cholesky(input=spd)
m.linalg.norm(input=x)
m.linalg.vector_norm(input=x)
m.linalg.vector_norm(x=x)
m.linalg.pinv(input=x)
m.linalg.pinv(x, rcond=1e-3)
m.linalg.matrix_rank(input=x, tol=1e-3)
m.linalg.eigh(input=spd)[0]
m.linalg.eigvalsh(input=spd)
m.linalg.solve_triangular(input=spd, B=spd, upper=True)
m.linalg.tensorinv(input=spd, ind=1)
m.linalg.tensorsolve(input=spd, other=x[:,0])
m.linalg.inv(A=spd)
m.linalg.det(A=spd)
m.linalg.matrix_power(input=spd, n=2)
m.linalg.matrix_exp(input=spd)
m.linalg.cond(input=spd)
m.linalg.lstsq(input=spd, b=spd)[0]
m.linalg.slogdet(A=spd)
m.linalg.solve(A=spd, B=x)
m.linalg.multi_dot(tensors=[x, x.T])
m.linalg.cross(input=x, other=x)
m.cholesky(input=spd)
m.cholesky_inverse(input=spd)
m.cholesky_solve(input=x, input2=spd)
m.logdet(input=spd)
m.isin(elements=x, test_element=2.0)
m.isin(element=2.0, test_elements=x)
m.dropout(x, p=0.0, train=True)
m.dropout(x, 0.0, True)
m.alpha_dropout(x, 0.0, train=False)
m.svd(x, some=True, compute_uv=True)[1]
m.split(x, 1)
m.split(tensor=x, split_size_or_sections=1)
x.split(split_size=1)
x.split_with_sizes(split_sizes=[1,1])
m.split_with_sizes(input=x, split_sizes=[1,1])
m.chunk(input=x, chunks=2)
m.cat(tensors=[x,x], dim=0)
m.concat(tensors=[x,x], dim=0)
m.concatenate([x,x], axis=0)
m.stack(tensors=[x,x])
x.clone().copy_(other=x)
x.clone().uniform_(**{"from":0,"to":0})
x.clone().random_(**{"from":3,"to":4})
x.clone().random_(to=1)
x.clone().random_(3, to=4)
x.clone().bernoulli_(p=0)
F.one_hot(input=i)
F.softmax(x, dim=1, _stacklevel=3)
F.softmax(x, 1, 3)
F.softmax(x, 1, 3, m.float64)
F.log_softmax(x, 1, 3, None)
m.arange(end=3)
m.arange(start=1, end=3, step=1)
m.zeros(size=(2,))
m.full(size=(2,), fill_value=1.5)
m.linspace(start=0, end=1, steps=3)
m.eye(n=2, m=3)
m.einsum('ij->ji', [x])
m.scatter(x, dim=0, index=i, value=1.0)
m.scatter(input=x, dim=0, index=i, src=x)
m.scatter(x, 0, i, 1.0, reduce='add')
m.index_select(input=x, dim=0, index=m.tensor([0]))
m.clamp(input=x, min=1)
m.clip(x, min=1, max=2)
m.max(x, other=x)
m.max(input=x, dim=0)[0]
m.sum(input=x, dim=0)
m.sum(x, axis=0, keepdims=True)
m.sum(x, axis=0, keepdim=True)
m.amax(x, axis=0, keepdim=True)
m.mean(x, axis=(0,1))
m.softmax(x, axis=0)
m.unsqueeze(input=x, dim=0)
m.squeeze(x, axis=0)
m.repeat_interleave(m.tensor([1,2]))
m.repeat_interleave(repeats=m.tensor([1,2]))
m.repeat_interleave(x, repeats=2, dim=0)
m.roll(x, shifts=1, dims=0)
m.rot90(x, k=1, dims=[0,1])
m.quantile(x, q=0.5)
m.cumsum(x, axis=0)
m.gather(input=x, dim=1, index=i)
m.diff(x, n=1, axis=0)
m.norm(x, p=2)
m.norm(input=x, dim=0)
x.norm(2, 0, False)
m.histc(input=x, bins=3, min=0, max=5)
m.tril(input=x, diagonal=0)
m.floor_divide(input=x, other=2)
m.eq(input=x, other=1)
m.logical_and(input=x>1, other=x>2)
m.matmul(input=x, other=x.T)
m.mm(input=x, mat2=x.T)
m.bmm(input=x[None], mat2=x.T[None])
m.outer(input=x[0], vec2=x[0])
m.ger(x[0], vec2=x[0])
m.cross(x, other=x, dim=1)
m.kron(input=x, other=x)
m.cdist(x1=x, x2=x)
m.cosine_similarity(x1=x, x2=x)
F.pairwise_distance(x1=x, x2=x)
m.bernoulli(input=x*0)
m.normal(mean=x*0, std=x*0)
m.normal(mean=0.0, std=0.0, size=(2,))
m.multinomial(input=x[1], num_samples=1).shape
m.from_dlpack(x, device="cpu", copy=True)
m.take_along_dim(x, indices=i, dim=1)
x.masked_fill(mask=x>1, value=0)
x.clone().masked_scatter_(mask=x>1, source=x)
x.to(device="cpu", dtype=m.float64)
x.type(dtype=m.float64)
x.new_zeros(size=(2,))
x.new_full(size=(2,), fill_value=1)
x.new_ones(size=(2,))
x.new_empty(size=(2,)).shape
x.new_tensor(data=[1])
x.size(dim=0)
x.stride(dim=0)
x.unflatten(dim=1, sizes=(1,3))
x.flatten(start_dim=0)
x.unfold(dimension=1, size=2, step=1)
x.argmax(axis=0)
x.type_as(other=x)
x.view_as(other=x)
x.index_add(dim=0, index=m.tensor([0,1]), source=x)
m.nn.functional.linear(input=x, weight=x)
F.conv2d(input=x[None,None], weight=m.ones(1,1,2,2))
F.max_pool2d(input=x[None], kernel_size=2)
F.interpolate(input=x[None], size=4)
F.pad(input=x, pad=(1,1))
F.gelu(input=x, approximate='tanh')
F.embedding(input=i, weight=x)
F.cross_entropy(input=x, target=m.tensor([0,1]))
F.scaled_dot_product_attention(query=x[None], key=x[None], value=x[None])
F.layer_norm(input=x, normalized_shape=(3,))
F.dropout(input=x, p=0.0)
m.rand(size=(2,)).shape
m.randn(size=(2,)).shape
m.randint(low=0, high=2, size=(2,)).shape
m.randperm(n=3).shape
m.tensor(data=[1])
m.as_tensor(data=[1])
m.asarray(obj=[1])
m.numel(input=x)
m.tensordot(a=x, b=x, dims=2)
m.chain_matmul(x, x.T)
m.block_diag(x, x)
m.atleast_1d(x)
m.broadcast_tensors(x, x)
m.bucketize(input=x, boundaries=x[0])
m.searchsorted(sorted_sequence=x[0], input=x)
m.unique(input=x, sorted=True)
m.logsumexp(input=x, dim=0)
m.addcdiv(input=x, tensor1=x, tensor2=x+1, value=1)
m.lerp(input=x, end=x, weight=0.5)
m.topk(input=x, k=1)[0]
m.kthvalue(input=x, k=1)[0]
m.sort(input=x, dim=0, descending=True)[0]
m.argsort(input=x, dim=0)
m.trapezoid(y=x, x=x)
m.gradient(input=x, spacing=1.0)
m.cov(input=x)
m.corrcoef(input=x)
m.vander(x=x[0])
m.renorm(input=x, p=2, dim=0, maxnorm=1)
m.masked_select(input=x, mask=x>1)
m.narrow(input=x, dim=0, start=0, length=1)
m.select(input=x, dim=0, index=0)
m.movedim(input=x, source=0, destination=1)
m.nan_to_num(input=x, nan=0.0)
m.heaviside(input=x, values=x)
m.clone(input=x)
m.clone(x, memory_format=m.preserve_format)
m.zeros_like(input=x)
m.full_like(input=x, fill_value=2)
m.cummax(input=x, dim=0)[0]
m.count_nonzero(input=x, dim=0)
m.allclose(input=x, other=x)
m.equal(input=x, other=x)
m.std(input=x, dim=0, correction=0)
m.combinations(input=x[0], r=2)
m.cartesian_prod(x[0], x[0])
m.digamma(input=x+1)
m.polygamma(n=1, input=x+1)
m.special.polygamma(n=1, input=x+1)
m.special.logit(input=x/9)
m.special.round(input=x, decimals=1)
m.bitwise_left_shift(self=1, other=i)
m.copysign(input=x, other=-1)
m.ldexp(input=x, other=i)
m.fmod(input=x, other=2)
m.div(input=x, other=2, rounding_mode='floor')
m.baddbmm(input=x[None], batch1=(x@x.T)[None], batch2=x[None], beta=1, alpha=1)
m.addbmm(input=x, batch1=(x@x.T)[None], batch2=x[None])
m.addmv(input=x[:,0], mat=x, vec=x[0])
m.addr(input=x, vec1=x[:,0], vec2=x[0])
m.conv1d(x[None], m.ones(1,2,2), padding='same')
"""
INPUTS = (
    "m.nn.functional, m.arange(6.0).reshape(2, 3), m.tensor([[0, 1, 1], [1, 0, 0]]), m.tensor([[2.0, 1.0], [1.0, 3.0]])"
)


@pytest.mark.filterwarnings("ignore::UserWarning")  # both warn about deprecated calls
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_calls(call: str) -> None:
    assert_agree(f"(lambda F, x, i, spd: {call})({INPUTS})", rtol=1e-5, atol=1e-6)


def test_deprecated_orders_warn() -> None:
    x = tl.ones(2)
    with pytest.warns(UserWarning, match="overload of add is deprecated: pass alpha by name"):
        x.add_(-0.5, x)
    assert x.tolist() == [0.5, 0.5]


PLACES = {
    "": (torch, tl),
    "F": (torch.nn.functional, tl.nn.functional),
    "linalg": (torch.linalg, tl.linalg),
    "special": (torch.special, tl.special),
    "Tensor": (torch.Tensor, tl.Tensor),
}
OF_SCRIPTS = {"a", "b", "l", "n", "t", "i", "list", "idx", "reverse", "info"}  # parameters of TorchScript's overloads
ABSENT = {
    "cudnn_enable": "the choice of a library",
    "cudnn_enabled": "the choice of a library",
    "out_dtype": "on CUDA only",
    "implicit": "of the tracer",
    "masked_grad": "of sparse tensors",
    "from": "a keyword of Python, among `**named`",
}
ABSENT_FUNCTIONS = {
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh"), "one function takes the names of both overloads"),
    **dict.fromkeys(
        (f"sparse_{layout}_tensor" for layout in ("csr", "csc", "bsr", "bsc")), "one function takes each one's names"
    ),
    "sparse_coo_tensor": "a layout that its name gives",
    "compile": "options of Dynamo",
    "save": "options of the format",
    "initial_seed": "a function of a generator",
    "seed": "a function of a generator",
    "einsum": "TorchScript's overload; the operands have no names",
    "atleast_1d": "TorchScript's overload",
    "atleast_2d": "TorchScript's overload",
    "atleast_3d": "TorchScript's overload",
    "elu_": "SELU's factors",
    "dequantize": "overloads of quantized tensors",
    "result_type": "overloads of numbers",
    "normal": "an overload of methods",
    "rrelu": "draws from the default generator",
    "rrelu_": "draws from the default generator",
    "to": "one layout; `pin_memory` of storages",
}
# `inplace` of activations is no parameter of their ops; that of pools with indices is always true.
NOT_IN_SIGNATURES = {"out", "inplace", "return_indices"}


def names_in_pytorch(place: str, name: str, function: Any) -> list[list[str]]:
    """Return the names of the parameters of each overload."""
    try:
        own = inspect.signature(function).parameters.values()
        return [[p.name for p in own if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]]
    except (TypeError, ValueError):  # a function of C++
        pass
    overloads, prefix = [], f"{place}_" if place in ("linalg", "special") else ""
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}"):
        names = [a.name for a in schema.arguments if not a.is_out]
        if not OF_SCRIPTS & set(names) and not any("Dimname" in str(a.type) for a in schema.arguments):
            overloads.append(["input" if n == "self" else n for n in names])
    return overloads


@pytest.mark.parametrize("place", PLACES)
def test_names_of_parameters(place: str) -> None:
    theirs, ours = PLACES[place]
    missing = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names
        for name in dir(ours):
            function, reference = getattr(ours, name, None), getattr(theirs, name, None)
            if name.startswith("_") or not callable(function) or not callable(reference) or inspect.isclass(function):
                continue
            if name in ABSENT_FUNCTIONS or hasattr(refused, name):  # that raise whatever is passed
                continue
            own = dict(inspect.signature(function).parameters)
            own |= dict.fromkeys(KEYWORDS if hasattr(function, "takes_out") else ())
            for names in names_in_pytorch(place, name, reference):
                given = (
                    set(names) - ({"input", "self"} if place == "Tensor" else set()) - ABSENT.keys() - NOT_IN_SIGNATURES
                )
                missing += [f"{name}({n}=)" for n in sorted(given - own.keys() - aliases_of(own).keys())]
    assert not missing, "\n".join(sorted(set(missing)))

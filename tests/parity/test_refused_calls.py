"""Calls that PyTorch refuses are refused, with an error that derives from PyTorch's, and with its words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl

# Calls, each with a part of PyTorch's message that people search for.
SUBTRACTION = "with a bool tensor is not supported"
CALLS = {
    "m.tensor(1.5) - m.tensor(True)": SUBTRACTION,
    "m.tensor([1.5]) - True": SUBTRACTION,
    "m.tensor([True]) - 1": SUBTRACTION,
    "2 - m.tensor([True])": SUBTRACTION,
    "True - m.tensor([1.5])": SUBTRACTION,
    "m.rsub(m.tensor([1.5]), True)": SUBTRACTION,
    "m.sub(m.tensor([1.5]), m.tensor([True]))": SUBTRACTION,
    "m.sub(m.tensor([1.5]), m.tensor([True]), alpha=2)": SUBTRACTION,
    "m.tensor([1.5]).sub_(m.tensor([True]))": SUBTRACTION,
    "m.tensor([1.5]).__isub__(True)": SUBTRACTION,
    "m.tensor([1.5], requires_grad=True) - m.tensor([True])": SUBTRACTION,
    "m.tensor([True]) - m.tensor([False])": "Subtraction, the `-` operator, with",
}
FLOATS = (
    "gelu silu elu selu celu mish softplus hardswish hardsigmoid leaky_relu logsigmoid softshrink hardshrink "
    "softmax(0) log_softmax(0) rms_norm((2,)) layer_norm((2,)) glu"
)
for name in FLOATS.split():
    function, _, argument = name.partition("(")
    CALLS[f"m.nn.functional.{function}(m.tensor([1, 2]){', ' + argument if argument else ')'}"] = (
        "not implemented for 'Long'"
    )
CALLS |= {
    "m.nn.functional.mse_loss(m.tensor([1]), m.tensor([2]))": "not implemented for 'Long'",
    "m.nn.functional.huber_loss(m.tensor([1]), m.tensor([2]))": "not implemented for 'Long'",
    "m.nn.functional.cross_entropy(m.zeros(2, 3, dtype=m.int64), m.tensor([0, 1]))": "not implemented for 'Long'",
    "m.nn.functional.threshold(m.tensor([True]), 0, 0)": "not implemented for 'Bool'",
    "m.nn.functional.max_pool1d(m.zeros(1, 1, 4, dtype=m.bool), 2)": "not implemented for 'Bool'",
    "m.histc(m.tensor([1]), 3)": "not implemented for 'Long'",
    "m.tensor([1.5]) & m.tensor([1.5])": "not implemented for 'Float'",
    "m.ldexp(2, m.tensor([1]))": "must be Tensor",
    "m.tensor([1.5]) << 1": "not implemented for 'Float'",
    "m.arange(3, dtype=m.bool)": "not implemented for 'Bool'",
    "m.rand(3, dtype=m.int64)": "not implemented for 'Long'",
}


CALLS |= {
    "m.where(m.tensor([True]), None, None)": "where",
    "m.arange(0, 64, 0.5, out=m.empty(0, dtype=m.int64))": "step must be nonzero",
    "m.narrow(m.zeros(3), 0, m.tensor(True), 1)": "start must be an 0-dim integral Tensor",
    "m.narrow(m.zeros(3), 0, m.tensor([1]), 1)": "start must be an 0-dim integral Tensor",
    "m.nn.functional.linear_cross_entropy(m.zeros(3), m.zeros(2, 4, 3), m.zeros(2, 4))": "batched input",
    "m.ormqr(m.zeros(()), m.zeros(()), m.zeros(()))": "ormqr",
    "m.ormqr(m.zeros(5, 2), m.zeros(1), m.zeros(5, 3))": "ormqr",
    "m.histogramdd(m.zeros(5, 6), [1, 1, 1, 1, 1])": "histogramdd",
    "m.hash_tensor(m.zeros(2), mode=1)": "Unknown hash_tensor mode: 1",
    "m.hash_tensor(m.zeros(2, dtype=m.complex64))": "not implemented for 'ComplexFloat'",
    "m.sparse.mm(m.eye(2).to_sparse(), m.eye(2), 'sum')": "",
    "m.tensor([1.5]).prod(keepdim=True)": "prod",
    "m.trapezoid(m.ones(3), None)": "trapezoid",
    "m.tensor([1.5]).var(0, None)": "var",
    "m.nn.functional.adaptive_avg_pool2d(m.ones(1, 2, 2), None)": "NoneType",
    "m.nn.functional.layer_norm(m.ones(2), 2)": "normalized_shape",
    "m.nn.functional.batch_norm(m.ones(3, 2), None, m.ones(2), training=True)": "running_mean",
    "m.nn.functional.batch_norm(m.ones(3, 2), m.zeros(2), m.ones(2), training=2)": "training",
}


MEMORY = "to a single memory location"
CALLS |= {
    "m.complex(m.ones(2), m.ones(2), out=m.ones(2, dtype=m.complex128))": "",
    "m.polar(m.ones(2), m.ones(2), out=m.ones(2, dtype=m.complex128))": "",
    "m.multinomial(m.ones(2), 1, out=m.ones(1))": "multinomial",
    "m.ones(2).masked_fill(m.tensor([True, False]), m.tensor(1j))": "converted to",
    "m.ones(2, dtype=m.int64).index_fill_(0, m.tensor([0]), m.tensor(1j))": "complex",
    "m.ones(2).addcmul(m.ones(2), m.ones(2), value=1j)": "without overflow",
    "m.ones(2).add(m.ones(2), alpha=1j)": "",
    "m.ones(2).lerp(m.ones(2), 1j)": "without overflow",
    "m.ones(2, 2).logsumexp(None)": "argument 'dim'",
    "m.ones(2, 2, 2).narrow_copy(3, 0, 1)": "",
    "m.nn.functional.adaptive_avg_pool2d(m.ones(2, 2), (1, 1))": "Input dimension should be at least 3",
    "m.nn.functional.adaptive_max_pool3d(m.ones(2, 2), (1, 1, 1))": "Input dimension should be at least 4",
    "m.nn.functional.multi_margin_loss(m.ones(2, 3), m.ones(2), reduction='a')": "is not a valid value for reduction",
    "m.nn.functional.multi_margin_loss(m.ones(2, 3), m.ones(2), weight=m.ones(()))": "weight must be one-dimensional",
    "m.Tensor.__radd__(2, m.ones(2))": "doesn't apply to a 'int' object",
    "m.Tensor.__and__(2, m.tensor([1]))": "doesn't apply to a 'int' object",
    "(lambda x: m.exp(x[1:], out=x[:-1]))(m.ones(4))": MEMORY,
    "(lambda x: m.add(1, other=x[1:], out=x[:-1]))(m.ones(4))": MEMORY,
    "(lambda x: m.add(x, x[0], out=x))(m.ones(2, 2))": MEMORY,
    "(lambda x: m.cat((x, m.ones(2)), out=x))(m.ones(2))": MEMORY,
    "(lambda x: m.cat((x, m.ones(2)), out=x))(m.ones(0))": MEMORY,
    "(lambda x: m.gather(x, 0, m.tensor([1]), out=x[:1]))(m.ones(2))": MEMORY,
    "(lambda x: m.kthvalue(x, 1, out=(x, m.tensor(1))))(m.ones(2))": MEMORY,
    "(lambda x: m.masked_select(x, x > 0, out=x))(m.ones(2))": MEMORY,
    "m.index_select(m.ones(3, 6), 1, m.tensor([1, 1]), out=m.ones(2).expand(3, 2))": MEMORY,
}

HALVES = "det inv svd qr cholesky eigh pinv slogdet eigvalsh svdvals"
CALLS |= {f"m.linalg.{name}(m.eye(2).half())": "Half" for name in HALVES.split()}
CALLS |= {
    "m.cdist(m.eye(2).half(), m.eye(2).half())": "not implemented for 'Half'",
    "m.tensor([1, 2]).cumsum(0, dtype=m.bool)": "not implemented for 'Bool'",
    "m.tensor([1, 2]).cumprod(0, dtype=m.bool)": "not implemented for 'Bool'",
    "m.median(m.tensor([True]))": "not implemented for 'Bool'",
    "m.linspace(0, 1, 3, dtype=m.bool)": "not implemented for 'Bool'",
    "m.randperm(3, dtype=m.bool)": "not implemented for 'Bool'",
    "m.bincount(m.tensor([1.0]))": "not implemented for 'Float'",
    "m.lerp(m.tensor([1]), m.tensor([2]), 0.5)": "not implemented for 'Long'",
    "m.nn.functional.nll_loss(m.zeros(2, 3, dtype=m.int64), m.tensor([0, 1]))": "not implemented for 'Long'",
    "m.nn.functional.multi_margin_loss(m.zeros(2, 3, dtype=m.int64), m.tensor([0, 1]))": "not implemented for 'Long'",
    "m.nn.functional.binary_cross_entropy(m.tensor([1]), m.tensor([1]))": "not implemented for 'Long'",
    "m.nn.functional.gaussian_nll_loss(m.tensor([1]), m.tensor([1]), m.tensor([1]))": "Long",
    "m.nn.functional.soft_margin_loss(m.tensor([1]), m.tensor([1]))": "Long",
    "m.nn.functional.dropout(m.tensor([1, 2]))": "Long",
    "m.zeros(2, dtype='float32')": "dtype",
    "m.tensor([1.0], dtype='float32')": "dtype",
    "m.Size('ab')": "takes an iterable of 'int' (item 0 is 'str')",
    "m.Size([1]) + ('a',)": "takes an iterable of 'int' (item ",
    "('a',) + m.Size([1])": "takes an iterable of 'int' (item 0 is 'str')",
    "m.zeros(2, dtype=m.bool).fill_('a')": "fill_()",
    "m.hypot(m.tensor([1]), m.tensor([1]))": "not implemented for 'Long'",
    "m.nn.functional.alpha_dropout(m.tensor([1, 2]), training=True)": "Long",
    "m.linalg.lu_factor(m.eye(2).half())": "not implemented for 'Half'",
    "m.Size([1.5])": "takes an iterable of 'int' (item 0 is 'float')",
    "m.zeros(2).requires_grad_('a')": "requires_grad",
    "m.zeros(2).requires_grad_(1)": "requires_grad",
    "m.linspace(0, 1, 2.5)": "linspace",
    "m.logspace(0, 1, 3.0)": "logspace",
    "m.zeros(2, 2).sum(dim=True)": "bool",
    "m.promote_types(1, 2)": "promote_types",
    "m.from_numpy(np.array(['a']))": "can't convert",
    "m.zeros(2)['a']": "invalid data type 'str'",
    "'a' in m.zeros(2)": "Tensor.__contains__ only supports Tensor or scalar",
    "None in m.zeros(2)": "Tensor.__contains__ only supports Tensor or scalar",
    "[1, 2][m.tensor([1, 1])]": "only integer tensors of a single element can be converted to an index",
    "m.nn.Embedding(3, 2, padding_idx=9)": "padding_idx",
    "m.nn.Hardtanh(1, -1)": "must be greater than min_val",
    "m.nn.MultiheadAttention(5, 2)": "embed_dim must be divisible by num_heads",
    "m.nn.functional.pad(m.zeros(2), (1, 1), mode='foo')": "unrecognised padding mode",
    "m.nn.functional.interpolate(m.zeros(1, 1, 2, 2), scale_factor=2, mode='linear')": "but linear mode needs 3D input",
    "m.zeros(2, 3) @ m.zeros(2, 3)": "shapes cannot be multiplied",
    "m.nn.Linear(2, 3)(m.zeros(4, 5))": "shapes cannot be multiplied",
    "m.addmm(m.zeros(2, 2), m.zeros(2, 3), m.zeros(2, 3))": "shapes cannot be multiplied",
    "m.zeros(2, 3) + m.zeros(2, 4)": "must match the size of tensor b (4) at non-singleton dimension 1",
    "m.zeros(2, 3).mul_(m.zeros(2, 4))": "must match the size of tensor b (4) at non-singleton dimension 1",
    "m.where(m.zeros(2) > 0, m.zeros(3), m.zeros(3))": "must match the size of tensor",
    "(m.zeros(2, requires_grad=True) * 1).backward(m.zeros(3))": "Mismatch in shape: grad_output[0] has a shape of",
    "m.zeros(2, requires_grad=True).numpy()": "can't call numpy() on Tensor that requires grad",
    "m.zeros(3, 2).t().view(6)": "view size is not compatible with input tensor's size and stride",
    "m.zeros(2).expand(3)": "must match the existing size (2) at non-singleton dimension 0",
    "bool(m.zeros(2))": "Boolean value of Tensor with more than one value is ambiguous",
    "m.zeros(3)[5]": "index 5 is out of bounds for dimension 0 with size 3",
    "m.zeros(3)[m.tensor([5])]": "index 5 is out of bounds for dimension 0 with size 3",
    "m.nn.Embedding(3, 2)(m.tensor([5]))": "index out of range",
    "m.index_select(m.zeros(3), 0, m.tensor([5]))": "index out of range",
    "m.cat([m.zeros(2, 3), m.zeros(2, 4)])": "Sizes of tensors must match except in dimension",
    "m.stack([m.zeros(2), m.zeros(3)])": "stack expects each tensor to be equal size",
    "m.nn.Conv2d(2, 3, 9)(m.zeros(1, 2, 5, 5))": "Kernel size can't be greater than actual input size",
    "m.tensor([[1], [1, 2]])": "expected sequence of length",
    "m.einsum('ij,jk', m.zeros(2, 3), m.zeros(4, 5))": "does not broadcast with previously seen size 3",
    "m.mm(m.zeros(2, 2), m.zeros(2, 2, dtype=m.float64))": "to have the same dtype",
    "m.multinomial(m.tensor([-1.0, 2.0]), 1)": "probability tensor contains either `inf`, `nan` or element < 0",
    "m.split(m.zeros(4), [1, 2])": "expects split_sizes to sum exactly to 4",
    "m.topk(m.zeros(4), 5)": "selected index k out of range",
    "m.zeros(2, 3).permute(0)": "number of dimensions in the tensor input does not match",
    "m.nn.LSTM(2, 3)(m.zeros(2, 2, 5))": "input.size(-1) must be equal to input_size",
    "m.device('foo')": "Expected one of cpu, cuda, ipu, xpu",
    "m.zeros(2).to('foo:1')": "Expected one of cpu, cuda, ipu, xpu",
    "m.nn.functional.pdist(m.eye(2).half())": "not implemented for 'Half'",
    "m.bmm(m.zeros(2, 2, 3), m.zeros(2, 2, 3))": "Expected size for first two dimensions of batch2 tensor to be: [",
    "m.bmm(m.zeros(2, 2, 3), m.zeros(3, 3, 2))": "Expected size for first two dimensions of batch2 tensor to be: [",
    "m.baddbmm(m.zeros(2, 2, 3), m.zeros(2, 2, 3), m.zeros(2, 2, 3))": "first two dimensions of batch2",
    "m.nn.Linear(2, 2)(m.zeros(1, 2, dtype=m.float64))": "must have the same dtype",
    "m.zeros(3).copy_(m.zeros(2))": "must match the size of tensor b",
    "m.nn.Linear(2, 2).load_state_dict({'weight': m.zeros(2, 2)})": "Missing key(s) in state_dict",
    "m.nn.Linear(2, 2).load_state_dict({'x': m.zeros(1)}, strict=True)": "Unexpected key(s) in state_dict",
    "m.nn.Linear(2, 2).load_state_dict({'weight': m.zeros(3, 2)})": "size mismatch for weight",
    "m.nn.Linear(2, 2).load_state_dict({'weight': m.zeros(3, 2)}, strict=False)": "size mismatch for weight",
    "m.nn.functional.pad(m.zeros(2), (1, 1), mode='reflect')": "Padding size 2 is not supported for 1D input tensor",
    "m.nn.functional.pad(m.zeros(2, 2), (1, 1, 1, 1), mode='replicate')": "Padding size 4 is not supported",
    "m.nn.functional.pad(m.zeros(2, 2), (1, 1, 1, 1), mode='circular')": "Padding size 4 is not supported",
    "m.nn.functional.pad(m.tensor([1, 2]), (1, 1), value=1e30)": "without overflow",
    "m.nn.functional.gumbel_softmax(m.tensor([1, 2]))": "Long",
    "m.nn.functional.grouped_mm(m.zeros(8, 8), m.zeros(2, 8, 8), offs=m.tensor([8]).int())": "batch sizes",
    "m.signal.windows.hann(3, dtype=m.int64)": "expects float32 or float64 dtypes, got: ",
    "m.nn.functional.fractional_max_pool2d(m.ones(1, 1, 4, 4), 2, 2, _random_samples=m.ones(1, 1, 3))": "to 2; got",
    "m.lobpcg(m.eye(2), k=1)": "LOBPCG algorithm is not applicable when the number of A rows (=2) is smaller than",
    "m.zeros(2).equal(1)": "argument 'other'",
    "m.set_default_dtype('float32')": "floating-point",
    "m.std(m.zeros(2, 2), dim=0, axis=1)": "axis",
    "m.zeros(2, 2).norm(dim=0, keepdim=True, keepdims=False)": "keepdims",
    "m.set_grad_enabled('False')": "must be bool, not str",
    "m.tensor(['a'])": "too many dimensions 'str'",
}

REQUIRES_GRAD = "zeros(2{}) full((2,), 1.0{}) arange(2.0{}) eye(2{}) rand(2{}) tensor([1.0]{}) zeros_like(m.zeros(2){})"
for call in re.findall(r"\S+\(.*?\{\}\)", REQUIRES_GRAD):
    CALLS |= {f"m.{call.format(f', requires_grad={value}')}": "requires_grad" for value in ("'a'", "1")}

# A bool is no integer. Where the message lists the overloads, it names the type.
BOOLS = (
    "softmax(True) log_softmax(True) unsqueeze(True) transpose(True,0) cumsum(dim=True) argmax(True) topk(True) "
    "chunk(True) split(True) unbind(True) diagonal(True) triu(True) roll(True,0) select(0,True) narrow(0,True,1) "
    "narrow(0,0,True) gather(True,m.zeros(1,1,dtype=m.int64)) flatten(True) max(True)"
)
CALLS |= {f"m.zeros(2, 2).{call}": "bool" for call in BOOLS.split()}

LAYERS = (
    "Linear(-1,1) Linear(1,-1) Embedding(-1,2) EmbeddingBag(2,-1) Conv1d(-1,1,1) Conv2d(1,1,-1) "
    "ConvTranspose3d(1,-1,1) LayerNorm(-1) RMSNorm(-1) BatchNorm1d(-1) GroupNorm(1,-1) InstanceNorm2d(-1,affine=True) "
    "LSTMCell(-1,2) GRUCell(2,-1) PReLU(-1)"
)
CALLS |= {f"m.nn.{call}": "Trying to create tensor with negative dimension" for call in LAYERS.split()}
FACTORIES = "ones(2,-1) empty(-1) full((-1,),1.0) rand(-1) randn(-1) randint(0,3,(-1,)) zeros(2).new_zeros(-1)"
CALLS |= {f"m.{call}": "Trying to create tensor with negative dimension" for call in FACTORIES.split()}


def error_of(module: Any, call: str) -> Exception | None:
    try:
        eval(call, {"m": module, "np": np})
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("call", CALLS)
def test_refused_calls(call: str) -> None:
    theirs, ours = error_of(torch, call), error_of(tl, call)
    assert theirs is not None
    assert isinstance(ours, type(theirs)), repr(ours)
    for message in (str(theirs), str(ours)):
        assert re.search(re.escape(CALLS[call]), message, re.IGNORECASE), message


# Python numbers where PyTorch wants a tensor first, results in another dtype, and fractions for integers.
FIRST = "eq ne lt le gt ge not_equal less less_equal greater greater_equal fmod copysign rsub"
FLAWED = [f"m.{name}(2, m.ones(3))" for name in FIRST.split()]
FLAWED += [
    f"m.{call}, out=m.empty(0, dtype=m.float64))"
    for call in (
        "mm(m.ones(2, 2), m.ones(2, 2)", "matmul(m.ones(2), m.ones(2)", "bmm(m.ones(1, 2, 2), m.ones(1, 2, 2)",
        "softmax(m.ones(2), 0", "abs(m.ones(2)", "round(m.ones(2)", "gather(m.ones(2), 0, m.tensor([0])",
        "index_select(m.ones(2), 0, m.tensor([0])", "take(m.ones(2), m.tensor([0])", "triu(m.ones(2, 2)",
        "linalg.det(m.ones(2, 2)", "amax(m.ones(2), 0",
    )
]  # fmt: skip
FLAWED += [
    "m.topk(m.ones(2), 1, out=(m.empty(0, dtype=m.float64), m.empty(0, dtype=m.int64)))",
    "m.sort(m.ones(2), out=(m.empty(0, dtype=m.float64), m.empty(0, dtype=m.int64)))",
    "m.ones(4, 4).tril(0.5)",
    "m.triu(m.ones(4, 4), diagonal=1.5)",
    "m.nn.functional.one_hot(m.tensor([0]), 2.5)",
]


@pytest.mark.parametrize("call", FLAWED)
def test_flawed_calls_are_refused(call: str) -> None:
    for module in (torch, tl):
        with pytest.raises((TypeError, RuntimeError)):
            eval(call, {"m": module})


@pytest.mark.parametrize("name", ["add", "div", "exp", "sqrt", "cumsum", "mean", "maximum", "clamp"])
def test_elementwise_results_are_converted_to_the_dtype_of_out(name: str) -> None:
    second = {"exp": "", "sqrt": "", "cumsum": ", 0", "mean": ", 0"}.get(name, ", m.tensor(2.)")
    call = f"m.{name}(m.ones(3){second}, out=m.empty(0, dtype=m.float64))"
    mine, expected = (eval(call, {"m": module}) for module in (tl, torch))
    assert (mine.dtype, expected.dtype) == (tl.float64, torch.float64)
    np.testing.assert_allclose(mine.numpy(), expected.numpy())


@pytest.mark.parametrize("call", ["m.add(x, 1, out=x)", "m.neg(x[::2], out=x[1::2])", "m.softmax(x, 1, out=x)"])
def test_results_may_replace_operands(call: str) -> None:
    results = []
    for module in (torch, tl):
        x = module.arange(16.0).reshape(4, 4) / 10
        results.append((eval(call, {"m": module, "x": x}).numpy(), x.numpy()))
    for theirs, ours in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


ALIKE = [f"m.{name}(x, 0, i, x[:2] + 7, out=x)" for name in ("scatter", "scatter_add", "index_add", "index_copy")]
ALIKE += ["m.cat([x[:1], x[1:2]], out=x[2:4])", "m.logical_not(x > 1, out=x)", "x.masked_fill(x > 1, m.tensor(1 + 0j))"]
# PyTorch may read what it has written.
TAKEN = (
    "m.add(x[1:5], 1, out=x[:8:2])",
    "m.add(x[:8:2], 1, out=x[1:5])",
    "m.add(x[:1].expand(8), 1, out=x)",
    "m.add(x.view(2, 4)[:, 1:], 1, out=x.view(2, 4)[:, :-1])",
)


@pytest.mark.parametrize("call", [*ALIKE, *TAKEN])
def test_calls_that_pytorch_takes(call: str) -> None:
    """PyTorch copies some operands first, and looks for common memory of tensors without gaps alone."""
    theirs, ours = (eval(call, {"m": m, "x": m.arange(8.0), "i": m.tensor([2, 5])}) for m in (torch, tl))
    assert call in TAKEN or ours.tolist() == theirs.tolist()

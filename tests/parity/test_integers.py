"""Every kind of integer is a dim, a size or a number: those of NumPy, 0-d tensors, classes with `__index__`.

Where PyTorch takes an argument, tallow returns the same values and dtypes; `n` makes the integers of an expression.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_same, evaluate  # noqa: E402 - imports torch


class Index:
    """An integer of another library."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def short(value: int) -> Any:
    return np.int8(value) if value < 0 else np.uint8(value)


KINDS: dict[str, Callable[[Any], Callable[[int], Any]]] = {
    "int64": lambda m: np.int64,
    "int32": lambda m: np.int32,
    "uint8": lambda m: short,
    "index": lambda m: Index,
    "tensor": lambda m: m.tensor,
}
# PyTorch takes these; tallow's readers are those of other values
DIFFERENT = {
    "tensor": (
        "x[[n(0), n(1)]]",  # deprecated there: a list of tensors as a tuple
        "m.lerp(x, x, n(1))",  # a weight of another dtype
    ),
    "index": (
        "nn.Linear(n(3), n(2))(x).shape",
        "x.new_tensor([n(1)])",  # elements of a tensor are numbers
        "m.Size((n(2), n(3)))",
        "m.distributions.Categorical(m.ones(3) / 3).sample((n(2),)).shape",
    ),
}

EXPRESSIONS = """
m.einsum(x, [..., n(1)], x.T, [n(1), n(0)])
m.Tensor(n(2), n(3)).shape
x.sum(n(0))
x.sum((n(0), n(1)))
m.sum(x, dim=n(0))
x.mean(n(1))
x.std(n(1))
x.var(n(1), correction=n(1))
x.prod(n(0))
(x>0).any(n(0))
(x>0).all(n(0))
x.amax(n(0))
x.amin((n(0),))
x.logsumexp(n(0))
x.argmax(n(0))
x.argmin(n(0), keepdim=True)
x.median(n(0)).values
x.mode(n(0)).values
x.kthvalue(n(1), n(0)).values
x.topk(n(2), n(1)).values
x.sort(n(0)).values
x.argsort(n(0))
x.cumsum(n(0))
x.cumprod(n(1))
x.cummax(n(1)).values
x.logcumsumexp(n(1))
x.softmax(n(0))
x.log_softmax(n(0))
F.softmin(x, n(0))
x.norm(2, n(0))
m.linalg.vector_norm(x, 2, n(0))
m.linalg.norm(x, 2, n(0))
m.linalg.matrix_norm(x, 'fro', (n(0), n(1)))
m.count_nonzero(x, n(0))
m.nansum(x, n(0))
m.nanmean(x, n(0))
m.quantile(x, 0.5, n(0))
m.std_mean(x, n(0))[0]
m.var_mean(x, n(0))[0]
m.aminmax(x, dim=n(0))[0]
x.squeeze(n(0))
x[None].squeeze(n(0))
x[None].squeeze((n(0), n(1)))
x.unsqueeze(n(0))
x.roll(n(1), n(0))
x.roll(n(1))
x.roll((n(1), n(2)), (n(0), n(1)))
x.flip(n(0))
x.flip((n(0), n(1)))
x.rot90(n(1), (n(0), n(1)))
x.chunk(n(2), n(0))[0]
x.split(n(1), n(0))[0]
x.split((n(1), n(1)), n(0))[0]
x.tensor_split(n(2), n(0))[0]
x.tensor_split((n(1),), n(0))[0]
x.unbind(n(0))[0]
m.hsplit(x, n(3))[0]
m.vsplit(x, n(2))[0]
x.permute(n(1), n(0))
x.permute((n(1), n(0)))
x.transpose(n(0), n(1))
x.swapaxes(n(0), n(1))
x.movedim(n(0), n(1))
x.moveaxis((n(0),n(1)), (n(1),n(0)))
x.reshape(n(3), n(2))
x.reshape((n(3), n(2)))
x.view(n(3), n(2))
x.view((n(3), n(-1)))
x.expand(n(2), n(2), n(3))
x.expand((n(2), n(2), n(3)))
x.broadcast_to((n(2), n(2), n(3)))
x.repeat(n(2), n(1))
x.repeat((n(2), n(1)))
x.tile((n(2), n(1)))
x.tile(n(2))
x.repeat_interleave(n(2), n(0))
x.repeat_interleave(n(2), dim=n(0))
x.flatten(n(0), n(1))
x.unflatten(n(1), (n(1), n(3)))
x.narrow(n(0), n(0), n(1))
x.select(n(0), n(1))
x.diagonal(n(0), n(0), n(1))
x.diag(n(1))
m.diag_embed(x, n(0), n(0), n(1))
x.tril(n(1))
x.triu(n(1))
x.unfold(n(1), n(2), n(1))
x.as_strided((n(2), n(2)), (n(1), n(1)), n(1))
x.gather(n(0), i)
x.scatter(n(0), i, 1.0)
x.scatter(n(0), i, n(5))
x.scatter_add(n(0), i, x)
x.index_select(n(0), m.tensor([1, 0]))
x.index_add(n(0), m.tensor([1, 0]), x)
x.index_copy(n(0), m.tensor([1, 0]), x)
x.index_fill(n(0), m.tensor([1]), 2.0)
x.index_fill(n(0), m.tensor([1]), n(2))
m.take_along_dim(x, i, n(0))
x.diff(n(1), n(0))
m.cat([x, x], n(0))
m.cat((x, x), dim=n(1))
m.stack([x, x], n(0))
m.cross(x, x, dim=n(1))
m.renorm(x, 2, n(0), 1.0)
m.trapezoid(x, dim=n(0))
m.cumulative_trapezoid(x, dim=n(0))
m.gradient(x, dim=n(0))[0]
m.tensordot(x, x, n(2))
m.tensordot(x, x, ([n(0)], [n(0)]))
m.unique(x, dim=n(0))
m.unique_consecutive(x, dim=n(0))
m.bincount(i.flatten(), minlength=n(6))
m.histc(x, n(3), 0, 5)
m.matrix_power(x[:, :2], n(2))
m.linalg.matrix_power(x[:, :2], n(2))
m.vander(x[0], n(3))
m.combinations(x[0], n(2))
m.zeros(n(2), n(3))
m.zeros((n(2), n(3)))
m.zeros(n(2))
m.ones(n(2))
m.full((n(2),), 1.5)
m.full((n(2),), n(3))
m.empty(n(2)).shape
m.arange(n(3))
m.arange(n(1), n(5), n(2))
m.linspace(0, 1, n(3))
m.linspace(n(0), n(1), n(3))
m.logspace(0, 1, n(3))
m.eye(n(2))
m.eye(n(2), n(3))
m.tril_indices(n(2), n(3), n(0))
m.triu_indices(n(2), n(3))
m.rand(n(2)).shape
m.randn(n(2), n(3)).shape
m.randn((n(2), n(3))).shape
m.randint(n(3), (n(2),)).shape
m.randint(n(0), n(3), (n(2),)).shape
m.randperm(n(4)).shape
m.normal(0.0, 1.0, (n(2),)).shape
m.multinomial(x[1], n(2)).shape
m.empty_strided((n(2), n(2)), (n(2), n(1))).shape
x.new_zeros(n(2))
x.new_zeros((n(2), n(2)))
x.new_full((n(2),), 1)
x.new_empty(n(2)).shape
x.new_ones(n(2))
m.hann_window(n(4))
m.bartlett_window(n(4))
m.broadcast_shapes((n(2), n(1)), (n(3),))
x.size(n(0))
x.stride(n(0))
x.fill_(n(3))
m.Size((n(2), n(3)))
m.add(x, n(2))
m.add(x, x, alpha=n(2))
x + n(2)
n(2) + x
x ** n(2)
n(2) ** x
x // n(2)
x % n(2)
x == n(2)
x[n(0)]
x[n(0), n(1)]
x[:, n(0):n(2)]
x[[n(0), n(1)]]
m.clamp(x, n(1), n(3))
m.where(x > 1, x, n(0))
m.pow(x, n(2))
m.pow(n(2), x)
m.lerp(x, x, n(1))
m.masked_fill(x, x > 1, n(0))
m.full_like(x, n(3))
m.addcmul(x, x, x, value=n(2))
m.addmm(x[:, :2], x, x.T, beta=n(2), alpha=n(1))
m.sub(x, x, alpha=n(2))
m.isin(i, n(1))
m.searchsorted(x[0], n(1))
m.bucketize(n(1), x[0])
m.fmod(x, n(2))
m.round(x, decimals=n(1))
F.layer_norm(x, (n(3),))
F.rms_norm(x, (n(3),))
F.group_norm(x, n(3))
F.max_pool1d(x[None], n(2))
F.max_pool1d(x[None], n(2), n(1), n(1))
F.max_pool2d(x[None], n(2))
F.max_pool2d(x[None], (n(2), n(2)), (n(1), n(1)))
F.avg_pool1d(x[None], n(2))
F.avg_pool2d(x[None], n(2), n(1))
F.avg_pool2d(x[None], (n(2), n(1)), divisor_override=n(3))
F.lp_pool1d(x[None], 2, n(2))
F.lp_pool2d(x[None], n(2), n(2))
F.max_pool3d(x[None, None], (n(1), n(2), n(2)))
F.avg_pool3d(x[None, None], (n(1), n(2), n(2)))
F.adaptive_avg_pool1d(x, n(2))
F.adaptive_avg_pool2d(x[None], n(2))
F.adaptive_avg_pool2d(x[None], (n(2), n(1)))
F.adaptive_max_pool1d(x, n(2))
F.adaptive_max_pool2d(x[None], n(2))
F.conv1d(x[None], m.ones(1, 2, 2), None, n(1), n(1), n(1), n(1))
F.conv1d(x[None], m.ones(1, 2, 2), stride=(n(1),), padding=(n(1),))
F.conv2d(x[None], m.ones(1, 1, 2, 2), None, n(1), n(1), n(1), n(1))
F.conv2d(x[None], m.ones(1, 1, 2, 2), None, (n(1), n(2)), (n(1), n(0)), (n(1), n(1)), n(1))
F.conv_transpose1d(x[None], m.ones(2, 1, 2), None, n(2), n(0), n(1), n(1))
F.conv_transpose2d(x[None], m.ones(1, 1, 2, 2), None, n(2), (n(0), n(0)), n(1))
F.unfold(x[None, None], n(2))
F.unfold(x[None, None], (n(2), n(2)), n(1), n(1), n(1))
F.fold(m.ones(1, 4, 4), (n(3), n(3)), n(2))
F.fold(m.ones(1, 4, 4), n(3), (n(2), n(2)))
F.pad(x, (n(1), n(2)))
F.pad(x, (n(1), n(2)), value=n(1))
F.pad(x[None], (n(1), n(2)), mode='reflect')
F.interpolate(x[None], n(6))
F.interpolate(x[None], (n(6),))
F.interpolate(x[None], scale_factor=n(2))
F.interpolate(x[None, None], (n(4), n(6)), mode='bilinear')
F.pixel_shuffle(m.ones(1, 4, 2, 2), n(2))
F.pixel_unshuffle(m.ones(1, 1, 2, 2), n(2))
F.channel_shuffle(m.ones(1, 4, 2, 2), n(2))
F.one_hot(i, n(4))
F.glu(m.cat([x, x], 1), n(1))
F.normalize(x, dim=n(0))
F.normalize(x, 2, n(0))
F.cosine_similarity(x, x, n(0))
F.embedding(i, x, n(1))
F.cross_entropy(x, m.tensor([0, 2]), ignore_index=n(2))
F.nll_loss(x, m.tensor([0, 2]), ignore_index=n(2))
F.local_response_norm(x[None], n(2))
F.affine_grid(m.ones(1, 2, 3), (n(1), n(1), n(2), n(2)))
F.pairwise_distance(x, x, n(2))
F.ctc_loss(m.ones(5, 2, 3), m.tensor([[1], [1]]), m.tensor([5, 5]), m.tensor([1, 1]), blank=n(0))
F.multi_margin_loss(x, m.tensor([0, 1]), n(1))
F.gumbel_softmax(x, dim=n(0)).shape
F.elu(x, n(1))
F.leaky_relu(x, n(1))
F.hardtanh(x, n(-1), n(1))
F.threshold(x, n(1), n(0))
F.softplus(x, n(1), n(20))
F.dropout(x, n(0))
F.max_unpool1d(m.ones(1,1,2), m.tensor([[[0, 2]]]), n(2))
nn.Linear(n(3), n(2))(x).shape
nn.LayerNorm(n(3))(x)
nn.LayerNorm((n(3),))(x)
nn.RMSNorm(n(3))(x)
nn.GroupNorm(n(1), n(2))(x[None])
nn.BatchNorm1d(n(3))(x)
nn.InstanceNorm1d(n(2))(x[None])
nn.Embedding(n(4), n(2))(i).shape
nn.Embedding(n(4), n(2), padding_idx=n(1))(i).shape
nn.EmbeddingBag(n(4), n(2))(i).shape
nn.Conv1d(n(2), n(4), n(2))(x[None]).shape
nn.Conv1d(n(2), n(4), n(2), n(1), n(1), n(1), n(2))(x[None]).shape
nn.Conv2d(n(1), n(4), n(2), padding=n(1))(x[None]).shape
nn.Conv2d(n(1), n(4), (n(2), n(1)), padding=(n(1), n(1)), padding_mode='reflect')(x[None]).shape
nn.ConvTranspose2d(n(1), n(4), n(2), n(2))(x[None]).shape
nn.ConvTranspose2d(n(1), n(4), n(2), n(2), output_padding=n(1))(x[None]).shape
nn.MaxPool1d(n(2))(x)
nn.MaxPool2d(n(2))(x[None])
nn.MaxPool2d(n(2), n(1), n(1), n(1))(x[None])
nn.AvgPool1d(n(2))(x)
nn.AvgPool2d(n(2))(x[None])
nn.LPPool1d(n(2), n(2))(x)
nn.LPPool2d(n(2), n(2))(x[None])
nn.AdaptiveAvgPool1d(n(2))(x)
nn.AdaptiveAvgPool2d(n(2))(x[None])
nn.AdaptiveMaxPool2d((n(2), n(1)))(x[None])
nn.ZeroPad1d(n(1))(x)
nn.ZeroPad2d(n(1))(x[None])
nn.ReflectionPad1d(n(1))(x)
nn.ConstantPad1d(n(1), 1.0)(x)
nn.ReplicationPad2d((n(1), n(1), n(0), n(0)))(x[None])
nn.CircularPad1d(n(1))(x)
nn.Upsample(n(4))(x[None]).shape
nn.Upsample(scale_factor=n(2))(x[None]).shape
nn.UpsamplingNearest2d(n(4))(x[None, None]).shape
nn.PixelShuffle(n(2))(m.ones(1, 4, 2, 2))
nn.Unfold(n(2))(x[None, None])
nn.Fold(n(3), n(2))(m.ones(1, 4, 4))
nn.Flatten(n(0))(x)
nn.Unflatten(n(1), (n(1), n(3)))(x)
nn.Softmax(n(0))(x)
nn.LogSoftmax(n(0))(x)
nn.GLU(n(0))(x)
nn.CosineSimilarity(n(0))(x, x)
nn.LSTM(n(3), n(4))(x)[0].shape
nn.LSTM(n(3), n(4), n(2))(x)[0].shape
nn.GRU(n(3), n(4))(x)[0].shape
nn.RNN(n(3), n(4))(x)[0].shape
nn.LSTMCell(n(3), n(4))(x)[0].shape
nn.MultiheadAttention(n(4), n(2))(m.ones(3, 1, 4), m.ones(3, 1, 4), m.ones(3, 1, 4))[0].shape
nn.TransformerEncoderLayer(n(4), n(2), n(8))(m.ones(3, 1, 4)).shape
nn.Bilinear(n(3), n(3), n(2))(x, x).shape
nn.LocalResponseNorm(n(2))(x[None])
nn.ChannelShuffle(n(2))(m.ones(1, 4, 2, 2))
nn.Identity(n(2))(x)
nn.PReLU(n(2))(x[None]).shape
nn.LazyLinear(n(2))(x).shape
nn.CrossEntropyLoss(ignore_index=n(2))(x, m.tensor([0, 2]))
nn.Parameter(m.ones(n(2)))
nn.init.constant_(m.ones(2), n(2))
nn.Sequential(nn.Identity())[n(0)](x)
nn.AdaptiveLogSoftmaxWithLoss(n(3), n(4), [n(2)])(x, m.tensor([0, 3])).output.shape
m.linalg.vecdot(x, x, dim=n(0))
m.linalg.cross(x, x, dim=n(1))
m.special.softmax(x, n(0))
m.special.logsumexp(x, n(0))
m.dist(x, x, n(2))
m.bernoulli(x * 0, n(0))
x.sum_to_size(n(1), n(3))
x.sum_to_size((n(1), n(3)))
x.argsort(dim=n(0), descending=True)
i << n(1)
i & n(1)
m.logsumexp(x, [n(0), n(1)])
m.nanmedian(x, n(0)).values
m.cov(x, correction=n(0))
m.dsplit(x[None], n(3))[0]
m.select_scatter(x, x[0], n(0), n(1))
m.slice_scatter(x, x[:1], n(0), n(0), n(1))
m.diagonal_scatter(x, m.ones(2), n(0))
m.tensor(n(3))
m.tensor([n(3), n(4)])
m.as_tensor(n(3))
m.scalar_tensor(n(3))
x.new_tensor([n(1)])
m.kaiser_window(n(4))
m.pdist(x, n(2))
m.mvlgamma(x + 3, n(2))
m.polygamma(n(1), x + 1)
m.utils.data.TensorDataset(x)[n(0)][0]
len(m.utils.data.DataLoader(m.utils.data.TensorDataset(x), batch_size=n(2)))
len(m.utils.data.random_split(range(4), [n(2), n(2)])[0])
m.utils.data.Subset([x, x], [n(0)])[n(0)]
m.distributions.Categorical(m.ones(3) / 3).sample((n(2),)).shape
m.distributions.Normal(0.0, 1.0).sample((n(2),)).shape
m.distributions.Normal(0.0, 1.0).sample(m.Size([n(2)])).shape
m.distributions.Binomial(n(3), m.tensor(0.5)).mean
m.distributions.Independent(m.distributions.Normal(m.zeros(2), m.ones(2)), n(1)).event_shape
m.func.vmap(lambda a: a.sum(), n(0))(x)
m.vmap(lambda a: a.sum(n(0)))(x)
x.to(m.float64).sum(n(0))
"""


def value_of(expression: str, m: Any, kind: str) -> Any:
    x, i = m.arange(6.0).reshape(2, 3), m.tensor([[0, 1, 1], [1, 0, 0]])
    m.manual_seed(0)
    return evaluate(expression, m, {"F": m.nn.functional, "nn": m.nn, "n": KINDS[kind](m), "x": x, "i": i})


@pytest.mark.parametrize("kind", KINDS)
def test_every_integer_is_read(kind: str) -> None:
    failures = []
    for expression in EXPRESSIONS.strip().splitlines():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = value_of(expression, torch, kind)
            ours = value_of(expression, tl, kind)
        if isinstance(theirs, Exception) or expression in DIFFERENT.get(kind, ()):
            continue
        if isinstance(ours, Exception):
            failures.append(f"{expression}: {type(ours).__name__}: {ours}".partition("\n")[0])
            continue
        try:
            assert_same(ours, theirs, rtol=1e-5, atol=1e-6)
        except AssertionError as error:
            failures.append(f"{expression}: {ours!r} instead of {theirs!r} {error}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("value", [1.0, "1", None, [1.5]])
def test_other_values_are_refused(value: Any) -> None:
    x = tl.ones(2, 3)
    for call in (x.cumsum, x.unbind, x.unsqueeze, lambda dim: x.roll(1, dim or 1.0), tl.eye, x.chunk):
        with pytest.raises(TypeError):
            call(value)


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), np.int64(2)])
def test_numbers_of_numpy_do_not_widen(number: Any) -> None:
    """NumPy computes in the dtype of its own numbers; an attribute of an op is a number without a dtype."""
    expressions = """
F.leaky_relu(x, n)
F.elu(x, n)
F.celu(x, n)
F.hardtanh(x, -n, n)
F.softplus(x, n)
F.threshold(x, n, n)
F.hardshrink(x, n)
F.softshrink(x, n)
F.layer_norm(x, (3,), eps=n)
F.group_norm(x, 3, eps=n)
F.smooth_l1_loss(x, x, beta=n)
F.huber_loss(x, x, delta=n)
F.multi_margin_loss(x, m.tensor([0, 1]), margin=n)
F.normalize(x, p=n)
F.gelu(x) * n
m.add(x, x, alpha=n)
m.sub(x, x, alpha=n)
m.addcmul(x, x, x, value=n)
m.addcdiv(x, x, x + 1, value=n)
m.lerp(x, x, n)
m.clamp(x, -n, n)
m.cdist(x, x, p=n)
m.logit(x / 9, eps=n / 4)
m.nn.functional.pad(x, (1, 1), value=n)
m.full((2,), n)
m.masked_fill(x, x > 1, n)
m.quantile(x, n / 4)
m.linalg.vector_norm(x, n)
x.half().add(x.half(), alpha=n)
m.pow(x, n)
""".strip().splitlines()
    for expression in expressions:
        theirs, ours = (
            evaluate(expression, m, {"F": m.nn.functional, "n": number, "x": m.arange(6.0).reshape(2, 3)})
            for m in (torch, tl)
        )
        if not isinstance(theirs, Exception):
            assert not isinstance(ours, Exception), f"{expression}: {ours!r}"
            assert_same(ours, theirs, rtol=1e-3, atol=1e-6)

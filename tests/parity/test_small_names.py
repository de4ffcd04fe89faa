"""Names that torch has at its top level, with the signatures of its C++ code, and small methods."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tallow as tl
from tallow.compat.foreach import foreach
from tallow.compat.torch import hub
from tallow.errors import ShapeError

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_agree  # noqa: E402 - imports torch

INPUTS = "m.arange(12.0).reshape(3, 4) / 7, m.tensor([[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 0]])"
CALLS = """
x.narrow_copy(1, 1, 2)
m.empty(2, 3, 4, device="meta").stride()
m.empty(2, 1, 0, 3, device="meta").stride()
m.empty(2, 3, device="meta").is_contiguous()
m.empty(2, 3, device="meta")[1:].t().storage_offset() * 0
F.soft_margin_loss(x, i > 0)
F.pad(x, (1, 1), value=float("inf"))
F.pad(i > 0, (1, 1), value=2)
m.diff(x, n=0, prepend=x)
x.new_empty_strided((2, 3), (1, 2)).stride()
m.lstm(x[:, None], h * 2, [x.repeat(3, 1)[:8], x.repeat(3, 1)[:8, :2]], False, 1, 0., True, False, True)
m.lstm(x, m.tensor([2, 1]), [h[0][:, :2]] * 2, [x.repeat(3, 1)[:8], x.repeat(3, 1)[:8, :2]], False, 1, 0., False, False)
m.gru(x[None], m.ones(2, 3, 1), [x, x[:, :1], *x.t()[:2], -x, x[:, :1], *x.t()[:2]], True, 1, 0., False, True, False)
m.rnn_tanh(x, m.tensor([2, 1]), m.ones(1, 2, 3), [x, x[:, :3], x[:, 0], x[:, 1]], True, 1, 0., True, False)
m.rnn_relu(x[None], m.zeros(1, 3, 3), [x, x[:, :3], x[:, 0], x[:, 1]], True, 1, 0., False, False, False)[0]
m.lobpcg(m.diag(m.arange(6.) ** 2), X=m.eye(6)[:, :2] + .1, largest=False, niter=99)[0]
F.fractional_max_pool2d(x[None], (2, 2), (2, 3), return_indices=True, _random_samples=m.full((1, 1, 2), .6))
F.fractional_max_pool3d(x.reshape(1, 3, 2, 2), (1, 1, 1), (2, 1, 1), _random_samples=m.full((1, 1, 3), .6))
F.fractional_max_pool2d(x[None], (2, 2), None, (.7, .6), _random_samples=m.full((1, 1, 2), .9))
m.masked.var(x * 1j, 1, mask=i > 0)
m.masked.mean(x * 1j, 1, mask=i > 0)
m.masked.sum(x * 1j, 1, mask=i > 0)
m.unsafe_chunk(x, 2, 1)[1]
x.unsafe_split(2)[1]
m.unsafe_split_with_sizes(x, [1, 2])[1]
m.as_strided_scatter(x, m.ones(2, 2), (2, 2), (1, 2), 1)
m.func.grad(lambda s: (m.as_strided_scatter(x, s, (2, 2), (1, 2), 1) ** 2).sum())(m.ones(2, 2))
m.histogramdd(x / 3, bins=1)[0]
m.view_copy(x, (4, 3))
m.split_copy(x, 2)[1]
m.slice_copy(x, 1, 1, 4, 2)
m.alias_copy(x)
m.permute_copy(x, (1, 0))
m.expand_copy(x[0], (2, 4))
m.nonzero_static(i, size=9, fill_value=5)
i.nonzero_static(size=2)
x.t().dim_order()
m.ones(2, 1, 3).dim_order(ambiguity_check=True)
m.ones(2, 3).dim_order(ambiguity_check=True)
m.ones(2, 3).dim_order(ambiguity_check=[m.contiguous_format])
m.zeros(4).resize_(size=(2, 3)).shape
m.ones(2, 3, 4).permute(2, 0, 1).dim_order()
m.empty_permuted((2, 3, 4), (1, 0, 2)).stride()
m.zeros(3, 4).map_(x, lambda a, b: a + 2 * b)
m.ones(3, 4).map2_(x, x[0], lambda a, b, c: a + b * c)
m.typename([])
m.typename(len)
m.histogramdd(x[:, :2], bins=[2, 3])[0]
m.histogramdd(x[:, :2], bins=2, range=[0., 1., 0., 1.], weight=x[:, 2])[0]
m.histogramdd(x[:, :2], bins=[m.tensor([0., .5, 2.]), m.tensor([0., 1.])], density=True)[0]
m.segment_reduce(x, "mean", lengths=m.tensor([2, 0, 1]))
m.segment_reduce(x, "mean", lengths=m.tensor([2, 0, 1]), initial=3)
m.segment_reduce(x, "max", lengths=m.tensor([[4, 0], [1, 3], [2, 2]]), axis=1)
m.segment_reduce(x, "min", offsets=m.tensor([0, 1, 3]), initial=.5)
m.segment_reduce(x, "prod", offsets=m.tensor([1, 2]))
m.segment_reduce(x, "sum", lengths=m.tensor([1, 2]), offsets=m.tensor([0, 2, 3]))
m.func.grad(lambda t: (m.segment_reduce(t, "max", lengths=m.tensor([2, 1])) ** 2).sum())(x)
m.sparse.mm((x * i).to_sparse_csr(), x.t(), "amax")
m.sparse.mm(m.tensor([[0., 0], [2., 3]]).to_sparse_csr(), x[:2], "mean")
F.max_pool2d_with_indices(x[None], 2, return_indices=True)[1]
F.adaptive_max_pool1d_with_indices(x, 2, return_indices=True)[1]
x.__rdiv__(2)
x.clone().__idiv__(2)
m.constant_pad_nd(x, (1, 2, 0, 1), 7)
m.constant_pad_nd(x * 1j, (1, 2), 7 + 1j)
m.grid_sampler(x[None, None], m.zeros(1, 2, 2, 2) + .3, 0, 1, True)
m.batch_norm(x, None, None, None, None, True, .1, 1e-5, False)
m.batch_norm(x, m.ones(4), m.zeros(4), m.zeros(4), m.ones(4), False, .1, 1e-5, False)
m.instance_norm(x[None], None, None, None, None, True, .1, 1e-5, False)
m.native_layer_norm(x, (4,), m.ones(4), None, 1e-5)[2]
m.native_group_norm(x[None], None, None, 1, 3, 4, 3, 1e-5)[1]
m.native_batch_norm(x, None, None, m.zeros(4), m.ones(4), True, .1, 1e-5)[2]
m.kl_div(x, x.softmax(1))
m.kl_div(x, x.softmax(1), 1)
m.ctc_loss(x.log_softmax(1)[:, None], m.tensor([[1, 2]]), m.tensor([3]), m.tensor([2]))
m.kl_div(x, x.softmax(1), 2, log_target=False)
m.binary_cross_entropy_with_logits(x, i.float(), None, None, 0)
m.hinge_embedding_loss(x, i * 2. - 1, 1.0, 1)
m.margin_ranking_loss(x, x.flip(0), i * 2. - 1, 0.5)
m.cosine_embedding_loss(x, x.flip(0), m.tensor([1, -1, 1]), 0.1, 0)
m.triplet_margin_loss(x, x.flip(0), x * 2, 1., 2., 1e-6, False, 1)
m.poisson_nll_loss(x, i.float(), True, False, 1e-8, 1)
m.embedding(x, i, -1, False, False)
m.embedding_renorm_(x.clone(), i, 0.5, 2.0)
m.feature_dropout(x, 0.5, False)
m.native_dropout(x, 0.5, False)[1]
m.norm_except_dim(x, 2, 1)
m.norm_except_dim(x, 2, -1)
m.nuclear_norm(x)
m.frobenius_norm(x, [0, 1])
m.fill_(m.zeros(2), 3)
m.zero_(m.ones(2))
m.index_put_(m.zeros(4), (i[0],), m.tensor(2.), True)
m.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)
m.fake_quantize_per_tensor_affine(x, m.tensor(0.1), m.tensor(3, dtype=m.int32), 0, 15)
m.func.grad(lambda x: (x * m.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)).sum())(x)
[m.nn.Conv2d(1, 1, 1).transposed, m.nn.ConvTranspose1d(1, 1, 1).transposed]
m.nn.functional.linear_cross_entropy(x, x, m.tensor([0, 2, 1]), linear_bias=x[:, 0], label_smoothing=0.1)
m.nn.functional.linear_cross_entropy(x[0], x, m.tensor(2), reduction="none")
m.nn.functional.linear_cross_entropy(x, m.stack([x, x * 2], 1), m.tensor([[0, 2], [1, 1], [2, -100]]))
m.func.grad(lambda w: m.nn.functional.linear_cross_entropy(x, w, m.tensor([0, 2, 1])))(x)
m.view_as_complex_copy(x.reshape(3, 2, 2))
m.view_as_real_copy(x * 1j)
x.dequantize() + m.dequantize(i)
[x.dense_dim(), x.sparse_dim()]
m.native_channel_shuffle(x[:, :, None], 2)
F.conv_tbc(x[:, None, :2], x.reshape(2, 2, 3), x[0, :3], 1)
m.nn.utils.rnn.invert_permutation(m.tensor([2, 0, 1]))
m.nn.utils.convert_conv2d_weight_memory_format(m.nn.Conv2d(2, 3, 2), m.channels_last).weight.stride()
m.autograd.gradgradcheck(lambda a: a ** 3, x.double().requires_grad_())
m.autograd.gradgradcheck(lambda a, b: (a * b).sin(), (x.double().requires_grad_(), x[0].double().requires_grad_()))
m.func.functionalize(lambda a: a.clone().mul_(2))(x)
m.func.replace_all_batch_norm_modules_(m.nn.Sequential(m.nn.BatchNorm1d(4)))[0].running_mean is None
F.fractional_max_pool2d_with_indices(x[None], (2, 2), (2, 3), _random_samples=m.full((1, 1, 2), .6))[1]
m.fake_quantize_per_channel_affine(x, m.tensor([.1, .2, .3]), m.tensor([0, 1, 2], dtype=m.int32), 0, 0, 7)
"""


@pytest.mark.filterwarnings("ignore")  # raised by PyTorch
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_equals_pytorch(call: str) -> None:
    assert_agree(f"(lambda x, i, h, F: {call})({INPUTS}, (m.ones(1, 3, 2),), m.nn.functional)", rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*range is deprecated")
@pytest.mark.parametrize("call", ["m.range(1, 4)", "m.range(0, 1, 0.25)", "m.range(3, 0, -1)"])
def test_range(call: str) -> None:
    assert_agree(call)


@pytest.mark.parametrize("name", ["dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"])
def test_dropout_in_place(name: str) -> None:
    assert_agree(f"(lambda x: m.{name}(x, 1.0, True) is x and x)(m.ones(2, 3, 4))")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_random_complex_numbers(dtype: str) -> None:
    tl.manual_seed(0)
    kind = getattr(tl, dtype)
    for draw, mean, variance in ((tl.randn, 0, 0.5), (tl.rand, 0.5, 1 / 12)):
        x = draw(20000, dtype=kind)
        assert x.dtype is kind
        for part in (x.real, x.imag):
            assert part.mean().item() == pytest.approx(mean, abs=0.02)
            assert part.var().item() == pytest.approx(variance, abs=0.02)
    assert tl.randn_like(x).dtype is tl.rand_like(x).dtype is kind


@pytest.mark.parametrize("offsets", [[1, 3, 6], [2, 2, 8]])
def test_grouped_mm(offsets: list[int]) -> None:
    rng = np.random.default_rng(0)
    wide, groups = rng.standard_normal((8, 8)), rng.standard_normal((3, 8, 8))
    for a, b in ((wide, groups), (groups, wide), (wide, wide)):
        results = []
        for m in (torch, tl):
            ends = m.tensor(offsets, dtype=m.int32)
            y = m.nn.functional.grouped_mm(m.tensor(a).bfloat16(), m.tensor(b).bfloat16(), offs=ends)
            y = y if y.ndim == 3 else y[: offsets[-1]] if a is wide else y[:, : offsets[-1]]
            results.append(y.float().numpy())
        np.testing.assert_allclose(*results, rtol=0.02, atol=0.05)
    with pytest.raises(ShapeError, match="Have to provide offsets"):
        tl.nn.functional.grouped_mm(tl.ones(2, 2), tl.ones(1, 2, 2))
    for wrong in ([1, 3], [2, 1]):  # of which PyTorch reads and writes other memory
        with pytest.raises(ShapeError, match="must rise, and end at 2"):
            tl.nn.functional.grouped_mm(tl.ones(2, 2), tl.ones(2, 2, 2), offs=tl.tensor(wrong))
    with pytest.raises(RuntimeError, match="without overflow"):
        tl.nn.functional.pad(tl.ones(2), (1, 1), value=1j)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [False, True])
def test_lobpcg(general: bool, largest: bool) -> None:
    rng = np.random.default_rng(0)
    A, B, X = (rng.standard_normal(shape) for shape in ((12, 12), (12, 12), (12, 2)))
    weights, found = rng.standard_normal((12, 2)), []
    for m in (torch, tl):
        a = m.tensor(A @ A.T).requires_grad_(m is tl or not general)
        b = m.tensor(B @ B.T + 9 * np.eye(12)) if general else None
        values, vectors = m.lobpcg(a, B=b, X=m.tensor(X), largest=largest, niter=400, tol=1e-11)
        found.append([values.detach().numpy(), abs(vectors.detach().numpy())])
        if not general:  # of which PyTorch has no gradient
            (values.sum() + (vectors**2 * m.tensor(weights)).sum()).backward()
            found[-1].append((a.grad + a.grad.mT).numpy())
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


LISTS = {  # of arguments, by which functions take them; x and y are lists, t a number and v numbers in a tensor
    "add sub mul div pow maximum minimum clamp_max clamp_min": ["y", "2.0", "[2.0, 3.0]"],
    "addcmul addcdiv": ["x, y", "y, x, 0.5", "y, x, [0.5, 2.0]", "y, x, v"],
    "lerp": ["y, 0.3", "y, x", "y, [0.3, 0.4]"],
    "copy": ["y"],
    "norm": ["", "1", "float('inf')"],
    "powsum": ["3"],
    "mm": [],
}


@pytest.mark.parametrize("name", [name for name in dir(torch) if name.startswith("_foreach_")])
def test_foreach(name: str) -> None:
    short = name.removeprefix("_foreach_").removesuffix("_")
    for arguments in next((calls for names, calls in LISTS.items() if short in names.split()), [""]):
        results = []
        for m, function in ((torch, getattr(torch, name)), (tl, foreach(name))):
            x, y = ([m.linspace(a, 0.9, 4), m.linspace(0.2, a, 6).view(2, 3)] for a in (0.3, 0.5))
            given = eval(f"({arguments},)" if arguments else "()", {"x": x, "y": y, "v": m.tensor([0.5, 2.0])})
            found = function(x, *given)
            assert found is x if name.endswith("_") else type(found) is tuple
            results.append([z.numpy() for z in found])
        for theirs, ours in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_foreach_with_a_number_first_and_of_no_method() -> None:
    theirs, ours = (f(2.0, [m.ones(2) * 3]) for m, f in ((torch, torch._foreach_pow), (tl, foreach("_foreach_pow"))))
    assert ours[0].tolist() == theirs[0].tolist()
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        foreach("_foreach_nothing")
    with pytest.raises(ShapeError, match="same number"):
        foreach("_foreach_add")([tl.ones(1)], [tl.ones(1)] * 2)
    with pytest.raises(RuntimeError, match="at least one tensor"):
        foreach("_foreach_add")([], 1)
    x = tl.ones(2)
    assert foreach("_foreach_addcmul")([x], [x], [x], scalars=tl.tensor([2.0]))[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("options", [{"bias": True}, {"out_features": (2,), "label_smoothing": 0.1}])
def test_linear_cross_entropy_loss(options: dict[str, object]) -> None:
    theirs, ours = (m.nn.LinearCrossEntropyLoss(4, 5, **options) for m in (torch, tl))
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({key: tl.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4)).astype("f")
    target = rng.integers(0, 5, (3, *ours.out_features))
    losses = [m(k.tensor(x), k.tensor(target)).item() for m, k in ((theirs, torch), (ours, tl))]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_fractional_max_pool_modules() -> None:
    x = tl.rand(1, 2, 7, 7)
    pool = tl.nn.FractionalMaxPool2d(3, output_ratio=0.5, return_indices=True)
    values, places = pool(x)
    assert values.shape == (1, 2, 3, 3)
    assert repr(pool) == repr(torch.nn.FractionalMaxPool2d(3, output_ratio=0.5))
    assert values.tolist() == x.flatten(2).gather(2, places.flatten(2)).view(1, 2, 3, 3).tolist()
    assert tl.nn.FractionalMaxPool3d((1, 2, 2), output_size=(1, 2, 2))(x).shape == (1, 1, 2, 2)
    for wrong in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        with pytest.raises(ValueError, match="output_ratio"):
            tl.nn.FractionalMaxPool2d(3, **wrong)


def test_entry_points_of_a_local_folder(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("FACTOR = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['math']\nfrom beside import FACTOR\nNUMBER = 1\n\n"
        "def scaled(x, *, by=FACTOR):\n    return x * by, NUMBER\n"
    )
    for load in (hub.load, torch.hub.load):
        assert load(str(tmp_path), "scaled", 2, source="local", trust_repo=True) == (6, 1)
        assert load(tmp_path, "scaled", 2, source="local", by=5) == (10, 1)
        for name in ("NUMBER", "absent"):
            with pytest.raises(RuntimeError, match=f"Cannot find callable {name} in hubconf"):
                load(tmp_path, name, source="local")
    assert str(tmp_path) not in sys.path
    del sys.modules["beside"]
    with pytest.raises(ValueError, match="is not supported"):
        hub.load("owner/name", "scaled")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\n")
    for load in (hub.load, torch.hub.load):
        with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
            load(tmp_path, "scaled", source="local")

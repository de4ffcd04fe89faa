"""Operands of many elements: several ops have another way for them, which is to give PyTorch's results too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((2, 300, 400)).astype(np.float32)
NEAR_1 = (1 + X / 1000).astype(np.float32)
WITH_NAN = np.where(RNG.random(X.shape) < 1e-3, np.float32(np.nan), X)
WITH_INFINITIES = np.where(X > 2, np.float32(np.inf), np.where(X < -2, np.float32(-np.inf), X))
MASK = RNG.random(X.shape) < 0.5
PLACES = RNG.integers(0, 300, X.shape)
IMAGES = RNG.standard_normal((2, 3, 64, 96)).astype(np.float32)
CLASSES = RNG.integers(0, 3, (2, 64, 96))
INTEGERS, BYTES = RNG.integers(-1000, 1000, (2, 60, 60)), RNG.integers(0, 255, (60, 60)).astype(np.uint8)
WITH_TIES = np.where(RNG.random(X.shape) < 1e-2, np.float32(-np.nan), np.round(WITH_INFINITIES, 1))  # -0, too
VOLUMES = RNG.standard_normal((2, 4, 9, 20, 20)).astype(np.float32)
OF_VOLUMES = RNG.standard_normal((6, 2, 3, 2, 3)).astype(np.float32)
LARGE_INTEGERS = RNG.integers(-(2**62), 2**62, (60, 60))


def _index_add(m: Any, x: Any, y: Any, places: Any) -> Any:
    return x.index_add(0, places[:, 0], y) + x.index_add(1, places[0], y)


def _orders(m: Any, x: Any, dim: int) -> Any:
    """Return the places of elements in both orders."""
    return m.stack([m.sort(x, dim=dim, descending=d, stable=True)[1] for d in (False, True)])


# Name -> a function of the module, and its operands. Gradients are compared for floats.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "where": (lambda m, c, x, y: m.where(c, x, y), (MASK, X, Y)),
    "where, one column": (lambda m, c, x, y: m.where(c[:, :1], x, y), (MASK, X, Y)),
    "where, number": (lambda m, c, x: m.where(c, x, 0.5), (MASK, X)),
    "masked_fill": (lambda m, c, x: x.masked_fill(c, float("-inf")), (MASK, X)),
    "leaky_relu": (lambda m, x: m.nn.functional.leaky_relu(x, 0.1), (X,)),
    "leaky_relu, special": (lambda m, x, y: m.nn.functional.leaky_relu(x, -2) + y, (WITH_NAN, WITH_INFINITIES)),
    "sigmoid, tanh, silu": (lambda m, x: x.sigmoid() * x.tanh() * m.nn.functional.silu(x), (X,)),
    "silu, strided": (lambda m, x: m.nn.functional.silu(x.T)[::2].tanh(), (X,)),
    "silu, special": (lambda m, x, y: m.nn.functional.silu(x.clamp(min=-60)) * y, (WITH_INFINITIES, WITH_NAN)),
    "silu, float64": (lambda m, x: m.nn.functional.silu(x.double()), (X,)),
    "prelu": (lambda m, x, w: m.nn.functional.prelu(x, w), (X, X[0])),
    "elu": (lambda m, x: m.nn.functional.elu(x), (X,)),
    "hardswish": (lambda m, x: m.nn.functional.hardswish(3 * x), (X,)),
    "softplus": (lambda m, x: m.nn.functional.softplus(20 * x), (X,)),
    "hardsigmoid": (lambda m, x: m.nn.functional.hardsigmoid(3 * x), (X,)),
    "hardtanh": (lambda m, x: m.nn.functional.hardtanh(x, -0.5, 2), (X,)),
    "add, alpha": (lambda m, x, y: m.sub(m.add(x, y, alpha=0.3), y * y, alpha=2), (X, Y)),
    "addcmul, addcdiv": (lambda m, x, y, z: m.addcmul(x, y, z) + m.addcdiv(x, y, z, value=0.3), (X, Y, NEAR_1)),
    "lerp": (lambda m, x, y: m.lerp(x, y, 0.3) + m.lerp(x, y, 0.7), (X, Y)),
    "in place": (lambda m, x, y: (x * 1).mul_(y).add_(y, alpha=2).div_(3).sub_(x), (X, Y)),
    "clamp": (lambda m, x: x.clamp(-0.5, 1), (X,)),
    "clamp, NaN": (lambda m, x: x.clamp(min=0.5) + x.clamp(max=float("inf")), (WITH_NAN,)),
    "clamp, NaN as bound": (lambda m, x: x.clamp(min=float("nan")), (X,)),
    "relu6": (lambda m, x: m.nn.functional.relu6(5 * x), (X,)),
    "softshrink": (lambda m, x: m.nn.functional.softshrink(x), (X,)),
    "maximum": (lambda m, x, y: m.maximum(x, y), (X, Y)),
    "smooth_l1_loss": (lambda m, x, y: m.nn.functional.smooth_l1_loss(x, y, beta=0.7), (X, Y)),
    "smooth_l1_loss, mean": (lambda m, x, y: m.nn.functional.smooth_l1_loss(x, y, beta=2), (X, Y)),
    "smooth_l1_loss, rows": (lambda m, x, y: m.nn.functional.smooth_l1_loss(x, y[:1].expand(x.shape)), (X, Y)),
    "mse_loss": (lambda m, x, y: m.nn.functional.mse_loss(x, y, reduction="sum") / 1000, (X, Y)),
    "mse_loss, special": (lambda m, x, y: m.nn.functional.mse_loss(x, y, reduction="none"), (X, WITH_NAN)),
    "huber_loss": (lambda m, x, y: m.nn.functional.huber_loss(x, y, delta=1.3), (X, Y)),
    "kl_div": (lambda m, x, y: m.nn.functional.kl_div(x, y, reduction="sum"), (X, np.abs(Y))),
    "nan_to_num": (lambda m, x: m.nan_to_num(x), (X,)),
    "nan_to_num, not finite": (lambda m, x, y: m.nan_to_num(x) + m.nan_to_num(y), (WITH_NAN, WITH_INFINITIES)),
    "erf": (lambda m, x: m.erf(x), (X,)),
    "erf, special": (lambda m, x, y: m.erf(x) + m.erf(y), (WITH_NAN, WITH_INFINITIES)),
    "cumsum 0": (lambda m, x: x.cumsum(0) / 20, (X,)),
    "cumsum 1": (lambda m, x: x.cumsum(1) / 20, (X,)),
    "cumsum, strided": (lambda m, x: x.T.cumsum(1) / 20, (X,)),
    "cumsum, float64": (lambda m, x: x.double().cumsum(0) / 20, (X,)),
    "cumsum, special": (lambda m, x, y: x.cumsum(0) / 20 + y.cumsum(1), (WITH_NAN, WITH_INFINITIES)),
    "tril, triu": (lambda m, x, y: x.tril(-3) + y.triu(5), (WITH_NAN, WITH_INFINITIES)),
    "triu of halves": (lambda m, x: x.detach().bfloat16().triu(1) + x.detach().half().tril(), (X,)),
    "triu of bool": (lambda m, c: c.triu(2), (MASK,)),
    "sort 0": (lambda m, x: m.sort(x, dim=0, stable=True)[0], (WITH_TIES,)),
    "sort 1": (lambda m, x: m.sort(x, dim=1, descending=True, stable=True)[0], (X,)),
    "orders": (lambda m, x: _orders(m, x, 0), (WITH_TIES,)),
    "orders of rows": (lambda m, x: _orders(m, x, 1), (WITH_TIES,)),
    "orders of all": (lambda m, x: _orders(m, x.reshape(-1), 0), (WITH_TIES,)),
    "orders of integers": (lambda m, a: _orders(m, a, 0), (INTEGERS,)),
    "orders of int32": (lambda m, a: _orders(m, (a * 2_000_000).int(), 1), (INTEGERS,)),
    "orders of large integers": (lambda m, a: _orders(m, a, 0), (LARGE_INTEGERS,)),
    "unique": (lambda m, a: m.unique(a), (PLACES,)),
    "unique, counts": (lambda m, a: m.unique(a, return_counts=True)[1], (PLACES,)),
    "embedding_bag": (lambda m, x, i: m.nn.functional.embedding_bag(i, x), (X, PLACES)),
    "embedding_bag, sum": (lambda m, x, i: m.nn.functional.embedding_bag(i, x, mode="sum") / 9, (X, PLACES)),
    "conv3d": (lambda m, x, w: m.nn.functional.conv3d(x, w, None, 2, 1, groups=2), (VOLUMES, OF_VOLUMES)),
    "conv3d, dilated": (
        lambda m, x, w: m.nn.functional.conv3d(x, w, None, 1, (2, 0, 1), 2, 2) / 9,
        (VOLUMES, OF_VOLUMES),
    ),
    "cross_entropy of images": (lambda m, x, i: m.nn.functional.cross_entropy(x, i), (IMAGES, CLASSES)),
    "gather 0": (lambda m, x, i: x.gather(0, i), (X, PLACES)),
    "gather 1": (lambda m, x, i: x.gather(1, i[:200]), (X, PLACES)),
    "scatter_add 0": (lambda m, x, y, i: x.scatter_add(0, i, y), (X, Y, PLACES)),
    "scatter_add 1": (lambda m, x, y, i: x.scatter_add(1, i, y), (X, Y, PLACES)),
    "index_select": (lambda m, x, i: x.index_select(1, i[0]), (X, PLACES)),
    "index_add": (_index_add, (X, Y, PLACES)),
    "rows": (lambda m, x, i: x[i[:, 0] - 150], (X, PLACES)),
    "columns": (lambda m, x, i: x[:, i[0] - 150], (X, PLACES)),
    "pairs": (lambda m, x, i: x[i, i], (X, PLACES)),
    "embedding": (lambda m, x, i: m.nn.functional.embedding(i, x), (X, PLACES)),
    "sum": (lambda m, x: x.sum(), (X,)),
    "mean, keepdim": (lambda m, x: x.mean((0, 1), keepdim=True), (X,)),
    "prod": (lambda m, x: x.prod(), (NEAR_1,)),
    "prod, last": (lambda m, x: x.prod(1, keepdim=True), (NEAR_1,)),
    "prod, first": (lambda m, x: x.prod(0), (NEAR_1,)),
    "median": (lambda m, x: x.median(), (X,)),
    "median, last": (lambda m, x: x.median(1)[0], (X,)),
    "median, NaN": (lambda m, x: x.median(1)[0], (WITH_NAN,)),
    "nanmedian": (lambda m, x: x.nanmedian(0)[0], (WITH_NAN,)),
    "outer product": (lambda m, x, y: x[0][:, None] @ y[:1], (X, Y)),
    "batch of outer products": (lambda m, x, y: x[:, :, None] @ y[:, None, :50], (X, Y)),
    "product of integers": (lambda m, a, b: a[0] @ b[1], (INTEGERS, INTEGERS)),
    "product of bytes": (lambda m, a, b: a @ b, (BYTES, BYTES)),
    "product of large integers": (lambda m, a, b: a @ b, (LARGE_INTEGERS, LARGE_INTEGERS)),
    "adaptive_avg_pool2d": (lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, (4, 3)), (IMAGES,)),
    "adaptive_avg_pool2d, wide": (lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 1), (IMAGES,)),
    "adaptive_max_pool2d": (lambda m, x: m.nn.functional.adaptive_max_pool2d(x, (4, 3)), (IMAGES,)),
    "linspace": (lambda m: m.linspace(-3, 7, 100_001), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_pytorch(name: str) -> None:
    function, operands = CASES[name]
    results = []
    for module in (tl, torch):
        tensors = [module.tensor(x) for x in operands]
        floats = [t.requires_grad_() for t in tensors if t.is_floating_point()]
        y = function(module, *tensors)
        floats = floats if y.requires_grad else []
        if floats:
            weights = module.tensor(np.cos(np.arange(y.numel(), dtype=np.float32))).reshape(y.shape)
            y.backward(weights)
        results.append([y.detach().numpy(), *(t.grad.numpy() for t in floats)])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_conversion_rounds_as_pytorch(dtype: str) -> None:
    exponents = RNG.integers(-30, 20, 10_000)
    ends = [0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.9, 65520, 2.0**-24, 2.0**-25, 1.5 * 2**-24, 6.0975e-5, 3e38]
    x = np.concatenate([RNG.standard_normal(10_000) * 2.0**exponents, ends, 1 + np.arange(4096) / 4096])
    x = x.astype(np.float32)
    ours, theirs = (module.tensor(x).to(getattr(module, dtype)).float().numpy() for module in (tl, torch))
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(np.signbit(ours[~np.isnan(x)]), np.signbit(theirs[~np.isnan(x)]))


def test_randperm_has_each_number_once() -> None:
    order = tl.randperm(100_000).numpy()
    np.testing.assert_array_equal(np.sort(order), np.arange(100_000))
    assert (order != np.arange(100_000)).mean() > 0.99

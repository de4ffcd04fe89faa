"""Compiled attention and its gradients fulfil the contract of their C file.

Expected values are the formulas in float64. Outputs and scratch memory lie between guards and are poisoned first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

import tallow as tl
from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels import library

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

RTOL = 2e-5  # relative to the largest element: sums of up to 300 products
SHAPES = [  # batch, heads, kv_heads, t, s, width, value_width
    (1, 1, 1, 1, 1, 1, 1),
    (2, 4, 4, 7, 7, 8, 8),
    (2, 4, 2, 33, 50, 5, 9),
    (1, 3, 1, 65, 20, 16, 64),
    (3, 2, 2, 1, 40, 3, 17),
    (1, 2, 2, 40, 301, 33, 12),
    (1, 1, 1, 16, 16, 300, 7),
]
rng = np.random.default_rng(3)


def normal(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def operands(batch: int, heads: int, kv_heads: int, t: int, s: int, width: int, value_width: int) -> list[Array]:
    """Return q, k, v, and the gradient of the output."""
    keys, values = normal(batch, kv_heads, s, width), normal(batch, kv_heads, s, value_width)
    return [normal(batch, heads, t, width), keys, values, normal(batch, heads, t, value_width)]


def compiled(name: str, *args: Any) -> Any:
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def forward_and_backward(
    q: Array, k: Array, v: Array, g: Array, scale: float, causal: bool, *, bias: Array | None = None
) -> list[Array]:
    groups = q.shape[1] // k.shape[1]
    y, stats = compiled("attention", q, k, v, bias, scale, causal, groups)
    return [y, *compiled("attention_backward", g, q, k, v, bias, stats, scale, causal, groups)]


def expected(
    q: Array, k: Array, v: Array, g: Array, scale: float, causal: bool, *, bias: Array | None = None
) -> list[Array]:
    """Return y, dq, dk and dv in float64."""
    groups = q.shape[1] // k.shape[1]
    q, g = q.astype(np.float64), g.astype(np.float64)
    k, v = (np.repeat(x.astype(np.float64), groups, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * scale + (0 if bias is None else bias)
    if causal:
        scores = np.where(np.arange(scores.shape[3]) > np.arange(scores.shape[2])[:, None], -np.inf, scores)
    p = np.exp(scores - np.maximum(scores.max(axis=3, keepdims=True), -1e300))
    p /= np.maximum(p.sum(axis=3, keepdims=True), 1e-300)  # a fully masked row has weights of 0
    dp = g @ v.swapaxes(2, 3)
    ds = p * (dp - (p * dp).sum(axis=3, keepdims=True)) * scale
    dk, dv = (
        x.reshape(len(x), -1, groups, *x.shape[2:]).sum(axis=2) for x in (ds.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ g)
    )
    return [p @ v, ds @ k, dk, dv]


def assert_agree(got: list[Array], expected_values: list[Array]) -> None:
    for mine, value in zip(got, expected_values, strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, value, rtol=RTOL, atol=RTOL * np.abs(value).max())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward_and_backward(shape: tuple[int, ...], causal: bool, poisoned_empty: list[GuardedArray]) -> None:
    inputs = operands(*shape)
    got = forward_and_backward(*inputs, shape[5] ** -0.5, causal)
    assert_agree(got, expected(*inputs, shape[5] ** -0.5, causal))
    for array in poisoned_empty:
        array.check_outside()
    outputs = [array for array in poisoned_empty if any(array.array is y for y in got)]
    assert len(outputs) == 4
    for array in outputs:
        array.check()


@pytest.mark.parametrize("shape", [(2, 4, 35, 50), (2, 1, 1, 50), (35, 50), (4, 1, 50), (35, 1), (1,)], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_bias(shape: tuple[int, ...], causal: bool, poisoned_empty: list[GuardedArray]) -> None:
    inputs = operands(2, 4, 2, 35, 50, 6, 9)
    bias = normal(*shape) * 2
    bias[normal(*shape) < -0.5] = -np.inf
    if len(shape) > 1:
        bias[..., :1, :] = -np.inf  # some rows, or all, are fully masked
    got = forward_and_backward(*inputs, 0.4, causal, bias=bias)
    assert_agree(got, expected(*inputs, 0.4, causal, bias=bias))
    for array in poisoned_empty:
        array.check_outside()


def test_any_layout() -> None:
    inputs = operands(2, 4, 2, 9, 11, 6, 10)
    expected_values = expected(*inputs, 0.3, True)
    positions_first = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in inputs]
    columns_first = [np.asfortranarray(x) for x in inputs]
    reversed_rows = [x[:, ::-1, ::-1].copy()[:, ::-1, ::-1] for x in inputs]
    part_of_rows = [np.concatenate([x, x], axis=3)[..., x.shape[3] :] for x in inputs]
    for others in (positions_first, columns_first, reversed_rows, part_of_rows):
        assert_agree(forward_and_backward(*others, 0.3, True), expected_values)


def test_large_scores_survive() -> None:
    q, k, v, g = operands(1, 1, 1, 20, 20, 8, 8)
    assert_agree(forward_and_backward(q * 100, k, v, g, 1.0, True)[:1], expected(q * 100, k, v, g, 1.0, True)[:1])


def test_nan_stays_in_its_rows() -> None:
    q, k, v, g = operands(1, 2, 2, 20, 20, 8, 8)
    q[0, 0, 3, 2] = np.nan
    y, dq, _, _ = forward_and_backward(q, k, v, g, 1.0, False)
    for array in (y, dq):
        assert np.isnan(array[0, 0, 3]).all()
        assert np.isfinite(np.delete(array[0, 0], 3, axis=0)).all()
        assert np.isfinite(array[0, 1]).all()


def test_mismatched_shapes_are_refused() -> None:
    q, k, v, g = operands(1, 4, 2, 5, 6, 8, 8)
    stats = normal(1, 4, 5, 2)
    bad = [
        ("attention", (q, k, v, None, 1.0, False, 1)),
        ("attention", (q, k[:, :, :5], v, None, 1.0, False, 2)),
        ("attention", (q, k[..., :7], v, None, 1.0, False, 2)),
        ("attention", (q[0], k[0], v[0], None, 1.0, False, 2)),
        ("attention", (q.astype(np.float64), k, v, None, 1.0, False, 2)),
        ("attention", (q, k[:, :, :0], v[:, :, :0], None, 1.0, False, 2)),
        ("attention", (q, k, v, normal(5, 5), 1.0, False, 2)),
        ("attention", (q, k, v, normal(1, 1, 4, 5, 6), 1.0, False, 2)),
        ("attention_backward", (g[..., :7], q, k, v, None, stats, 1.0, False, 2)),
        ("attention_backward", (g, q, k, v, None, stats[:, :, 1:], 1.0, False, 2)),
        ("attention_backward", (g, q, k, v, None, None, 1.0, False, 2)),
    ]
    for name, args in bad:
        with pytest.raises(ShapeError):
            compiled(name, *args)


def test_a_gradient_may_be_computed_without_the_kernel_that_went_forward() -> None:
    q, k, v, g = (tl.from_numpy(x) for x in operands(1, 2, 2, 5, 5, 4, 4))
    q.requires_grad_()
    grads = []
    for first, second in [(True, False), (False, True), (True, True)]:
        y = in_mode(first, lambda: tl.nn.functional.scaled_dot_product_attention(q, k, v))
        grads.append(in_mode(second, lambda y=y: tl.autograd.grad(y, q, g)[0].numpy()))
    for grad in grads[1:]:
        np.testing.assert_allclose(grad, grads[0], rtol=1e-4, atol=1e-5)


def in_mode(on: bool, call: Any) -> Any:
    if on:
        return call()
    with kernels.off():
        return call()


@pytest.mark.threads
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    inputs = operands(3, 4, 2, 33, 33, 8, 8)
    alone = forward_and_backward(*inputs, 0.3, True)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    for a, b in zip(forward_and_backward(*inputs, 0.3, True), alone, strict=True):
        np.testing.assert_array_equal(a, b)

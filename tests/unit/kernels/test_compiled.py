"""Compiled kernels fulfil the contracts of their C files: accuracy, odd lengths, alignment, aliasing, bounds.

Expected values are the formulas in float64. Outputs lie between guards and are poisoned first, so an element that was
not written and a write outside the array are both detected.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.guarded_arrays import GuardedArray

from tallow import kernels
from tallow.kernels import library

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

LENGTHS = [*range(1, 35), 63, 64, 65, 100, 257, 1000]
rng = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def pointer(array: Array | None) -> int | None:
    return None if array is None else array.ctypes.data


def c_function(name: str, *kinds: Any) -> Callable[..., None]:
    return library.function(name, None, *kinds)


P, N, F, I, D = library.POINTER, library.SIZE, library.FLOAT, library.INT, library.OFFSET


def call(name: str, *args: Any) -> Array:
    """Call the compiled kernel itself, whatever the table would choose."""
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def matmul(a: Array, b: Array) -> Array:
    from tallow.kernels.bindings.matmul import matmul

    return matmul(a, b)


def assert_close(got: Array, expected: Array, rtol: float, atol: float | Array = 0.0) -> None:
    assert got.dtype == np.float32
    assert got.shape == expected.shape
    error = np.abs(got - expected)
    allowed = rtol * np.abs(expected) + atol
    assert (error <= allowed).all(), (
        f"error is {(error / np.maximum(allowed, 1e-300)).max():.3g} times the allowed error"
    )


# Rows and elements: the formula in float64, and the C function called as fn(y, x) on guarded memory.


def softmax64(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def silu64(x: Array) -> Array:
    x = x.astype(np.float64)
    return x / (1 + np.exp(-x))


def sigmoid64(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def gelu64(x: Array) -> Array:
    x = x.astype(np.float64)
    return x * np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x.ravel()]).reshape(x.shape)


def gelu_tanh64(x: Array) -> Array:
    x = x.astype(np.float64)
    return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def rms_norm64(x: Array, weight: Array, eps: float) -> Array:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight


def layer_norm64(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    x = x.astype(np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * weight + bias


ROWS = 3
EPS = 1e-5
WEIGHT, BIAS = normal(1000), normal(1000)

ROW_KERNELS: dict[str, tuple[Callable[[Array], Array], Callable[[Array, Array], None], float, float]] = {
    "softmax": (
        softmax64,
        lambda y, x: c_function("tl_softmax_f32", P, P, N, N)(pointer(y), pointer(x), len(x), x.shape[1]),
        2e-6,
        0.0,
    ),
    "silu": (silu64, lambda y, x: c_function("tl_silu_f32", P, P, N)(pointer(y), pointer(x), x.size), 5e-7, 0.0),
    "gelu": (gelu64, lambda y, x: c_function("tl_gelu_f32", P, P, N)(pointer(y), pointer(x), x.size), 1e-6, 2e-7),
    "gelu_tanh": (
        gelu_tanh64,
        lambda y, x: c_function("tl_gelu_tanh_f32", P, P, N)(pointer(y), pointer(x), x.size),
        2e-6,
        4e-7,
    ),
    "rms_norm": (
        lambda x: rms_norm64(x, WEIGHT[: x.shape[1]], EPS),
        lambda y, x: c_function("tl_rms_norm_f32", P, P, P, N, N, F)(
            pointer(y), pointer(x), pointer(WEIGHT), len(x), x.shape[1], EPS
        ),
        1e-6,
        0.0,
    ),
    "layer_norm": (
        lambda x: layer_norm64(x, WEIGHT[: x.shape[1]], BIAS[: x.shape[1]], EPS),
        lambda y, x: c_function("tl_layer_norm_f32", P, P, P, P, N, N, F)(
            pointer(y), pointer(x), pointer(WEIGHT), pointer(BIAS), len(x), x.shape[1], EPS
        ),
        2e-6,
        2e-5,
    ),
    "sigmoid": (
        sigmoid64,
        lambda y, x: c_function("tl_sigmoid_f32", P, P, N)(pointer(y), pointer(x), x.size),
        5e-7,
        0.0,
    ),
}


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", ROW_KERNELS)
def test_any_length_and_alignment(name: str, n: int) -> None:
    expected, run, rtol, atol = ROW_KERNELS[name]
    for shift in range(4):
        x, y = GuardedArray(ROWS, n, shift=shift), GuardedArray(ROWS, n, shift=3 - shift)
        x.array[...] = normal(ROWS, n)
        run(y.array, x.array)
        assert_close(y.check(), expected(x.check()), rtol, atol)


@pytest.mark.parametrize("n", [1, 7, 8, 33, 64])
@pytest.mark.parametrize("name", ROW_KERNELS)
def test_in_place(name: str, n: int) -> None:
    expected, run, rtol, atol = ROW_KERNELS[name]
    x = GuardedArray(ROWS, n)
    x.array[...] = normal(ROWS, n)
    before = x.array.copy()
    run(x.array, x.array)
    assert_close(x.check(), expected(before), rtol, atol)


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_exponentials(n: int) -> None:
    for shift in range(3):
        x, highest, total = (
            shift_copy(normal(ROWS, n) * 5, shift),
            GuardedArray(ROWS, shift=1),
            GuardedArray(ROWS, shift=2),
        )
        c_function("tl_sum_exp_f32", P, P, P, N, N)(pointer(highest.array), pointer(total.array), pointer(x), ROWS, n)
        np.testing.assert_array_equal(highest.check(), x.max(axis=1))
        expected = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True)).sum(axis=1)
        assert_close(total.check(), expected, 2e-6)
        y, factor = GuardedArray(ROWS, n, shift=3 - shift), shift_copy(normal(ROWS), shift)
        scaled_exp = c_function("tl_scaled_exp_f32", *[P] * 4, N, N)
        scaled_exp(pointer(y.array), pointer(x), pointer(highest.array), pointer(factor), ROWS, n)
        difference = (x - highest.array[:, None]).astype(np.float64)
        assert_close(y.check(), np.exp(difference) * factor[:, None], 1e-6, 1e-37)
        scaled_exp(pointer(x), pointer(x), pointer(highest.array), pointer(factor), ROWS, n)  # in place
        np.testing.assert_array_equal(x, y.array)


@pytest.mark.parametrize("n", LENGTHS)
def test_losses_of_classes(n: int) -> None:
    losses = c_function("tl_cross_entropy_f32", *[P] * 5, N, N)
    for shift in range(3):
        x, target = shift_copy(normal(ROWS, n) * 5, shift), np.arange(ROWS, dtype=np.int64) * 7 % n
        loss, highest, total = (GuardedArray(ROWS, shift=i) for i in range(3))
        losses(*[pointer(a.array) for a in (loss, highest, total)], pointer(x), pointer(target), ROWS, n)
        exact = x.astype(np.float64)
        log_sum = np.log(np.exp(exact - exact.max(axis=1, keepdims=True)).sum(axis=1)) + exact.max(axis=1)
        assert_close(loss.check(), log_sum - exact[np.arange(ROWS), target], 2e-6, 2e-6)
        np.testing.assert_array_equal(highest.check(), x.max(axis=1))
        assert_close(total.check(), np.exp(exact - exact.max(axis=1, keepdims=True)).sum(axis=1), 2e-6)


@pytest.mark.parametrize("n", LENGTHS)
def test_gradients_of_classes(n: int) -> None:
    gradients = c_function("tl_cross_entropy_backward_f32", *[P] * 6, N, N)
    for shift in range(3):
        x, g = shift_copy(normal(ROWS, n) * 5, shift), shift_copy(normal(ROWS), shift)
        target = np.arange(ROWS, dtype=np.int64) * 7 % n
        target[-2:] = -1, n  # out of range: they have no gradient
        exact = x.astype(np.float64)
        powers = np.exp(exact - exact.max(axis=1, keepdims=True))
        highest, total = x.max(axis=1), powers.sum(axis=1).astype(np.float32)
        y = GuardedArray(ROWS, n, shift=shift)
        gradients(*[pointer(a) for a in (y.array, x, highest, total, g, target)], ROWS, n)
        expected = powers / powers.sum(axis=1, keepdims=True) - (np.arange(n) == target[:, None])
        expected *= np.append(g[:-2], [0, 0])[:, None]
        assert_close(y.check(), expected, 3e-6, 2e-6)


def test_losses_of_classes_out_of_range_and_of_rows_that_are_not_finite() -> None:
    x = np.array(
        [[0, 1], [0, 1], [np.nan, 0], [np.inf, 0], [-np.inf, -np.inf], [0, -np.inf], [3e38, -3e38]], np.float32
    )
    target = np.array([-1, 2, 1, 1, 1, 1, 0], np.int64)
    loss, highest, total = np.empty(7, np.float32), np.empty(7, np.float32), np.empty(7, np.float32)
    losses = c_function("tl_cross_entropy_f32", *[P] * 5, N, N)
    losses(pointer(loss), pointer(highest), pointer(total), pointer(x), pointer(target), 7, 2)
    np.testing.assert_array_equal(loss, [np.nan] * 5 + [np.inf, 0])


def test_sums_of_exponentials_of_masks_and_infinities() -> None:
    inf = np.inf
    x = np.array(
        [[0, -inf, 1, -inf, 0], [-inf] * 5, [0, inf, 0, 0, 0], [0, np.nan, 0, 0, 0], [3e38, -3e38, 0, 0, 3e38]]
    )
    highest, total = call("sum_exp", x.astype(np.float32))
    np.testing.assert_array_equal(highest[[0, 1, 2]], [1, -inf, inf])
    assert_close(total[[0, 4]], np.array([1 + 2 / math.e, 2]), 2e-6)
    assert np.isnan(total[1:4]).all()


# Gradients: the formula in float64, and the C function called as fn(dx, g, x) on guarded memory.


def gelu_backward64(g: Array, x: Array) -> Array:
    """g (Φ(x) + x φ(x))"""
    x = x.astype(np.float64)
    cdf = np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x.ravel()]).reshape(x.shape)
    return g * (cdf + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def gelu_tanh_backward64(g: Array, x: Array) -> Array:
    x = x.astype(np.float64)
    u, slope = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3), math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return g * ((1 + np.tanh(u)) / 2 + x / 2 * slope / np.cosh(u) ** 2)


GELU_GRADIENTS: dict[str, tuple[Callable[[Array, Array], Array], float]] = {
    "tl_gelu_backward_f32": (gelu_backward64, 1e-6),
    "tl_gelu_tanh_backward_f32": (gelu_tanh_backward64, 4e-6),
}


@pytest.mark.parametrize("n", [*range(1, 20), 257])
@pytest.mark.parametrize("name", GELU_GRADIENTS)
def test_gelu_backward(name: str, n: int) -> None:
    run = c_function(name, P, P, P, N)
    formula, error = GELU_GRADIENTS[name]
    for shift in range(3):
        g, x = shift_copy(normal(n), shift), shift_copy(normal(n) * 3, shift + 1)
        expected = formula(g, x)
        dx = GuardedArray(n, shift=3 - shift)
        run(pointer(dx.array), pointer(g), pointer(x), n)
        assert_close(dx.check(), expected, 0, error * np.abs(g))
        run(pointer(g), pointer(g), pointer(x), n)  # in place
        np.testing.assert_array_equal(g, dx.array)


@pytest.mark.parametrize("name", GELU_GRADIENTS)
def test_the_error_of_the_slope_of_gelu(name: str) -> None:
    formula, error = GELU_GRADIENTS[name]
    x = np.linspace(-8, 8, 100_001, dtype=np.float32)
    dx, g = np.empty_like(x), np.ones_like(x)
    c_function(name, P, P, P, N)(pointer(dx), pointer(g), pointer(x), x.size)
    assert_close(dx, formula(g, x), 0, error)


def test_gelu_backward_at_the_ends_of_float32() -> None:
    x = np.array([-3e38, -110, -20, -0.0, 0.0, 1e-40, 20, 110, 3e38, np.nan], np.float32)
    for approximate in ("none", "tanh"):
        slope = call("gelu_backward", x, np.ones_like(x), approximate)
        np.testing.assert_allclose(slope[:9], [0, 0, 0, 0.5, 0.5, 0.5, 1, 1, 1], atol=1e-30)
        assert np.isnan(slope[9])


def layer_norm_backward64(g: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    x, g = x.astype(np.float64), g.astype(np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPS)
    normal, h = centred * r, g * weight
    dx = r * (h - h.mean(axis=-1, keepdims=True) - normal * (h * normal).mean(axis=-1, keepdims=True))
    return dx, (g * normal).sum(axis=0), g.sum(axis=0)


@pytest.mark.parametrize("n", LENGTHS)
def test_layer_norm_backward(n: int) -> None:
    run = c_function("tl_layer_norm_backward_f32", *[P] * 6, N, N, F)
    for shift in range(3):
        g, x, w = shift_copy(normal(7, n), shift), shift_copy(normal(7, n), 3 - shift), shift_copy(WEIGHT[:n], 1)
        for weight in (w, None):
            dx, dw, db = GuardedArray(7, n, shift=shift), GuardedArray(n, shift=1), GuardedArray(n, shift=2)
            run(*(pointer(a) for a in (dx.array, dw.array, db.array, g, x, weight)), 7, n, EPS)
            scale = np.ones(n) if weight is None else w
            expected_values = layer_norm_backward64(g, x, scale)
            deviation = np.sqrt(x.astype(np.float64).var(axis=-1, keepdims=True) + EPS)
            slope = (np.abs(g * scale) / deviation).max()
            far = 1 + (np.abs(x.mean(axis=-1, keepdims=True)) / deviation).max()  # the error of rounding the mean
            for got, value, size in zip((dx, dw, db), expected_values, (slope * far, 50 * far, 20), strict=True):
                assert_close(got.check(), value, 1e-5, 2e-6 * size)


@pytest.mark.parametrize("name", ["softmax", "silu", "gelu", "gelu_tanh", "sigmoid"])
@pytest.mark.parametrize("n", [5, 8, 37])
def test_nan_reaches_the_result(name: str, n: int) -> None:
    _, run, _, _ = ROW_KERNELS[name]
    for place in range(n):
        x, y = normal(1, n), normal(1, n)
        x[0, place] = np.nan
        run(y, x)
        assert np.isnan(y[0, place])
        assert np.isnan(y).sum() == (n if name == "softmax" else 1)


def test_activations_at_the_ends_of_float32() -> None:
    x = np.array([-np.inf, -3e38, -110, -88, -0.0, 0.0, 1e-40, 88, 110, 3e38, np.inf], np.float32)
    silu, gelu, gelu_tanh = call("silu", x), call("gelu", x, "none"), call("gelu", x, "tanh")
    for got in (silu, gelu, gelu_tanh):
        assert np.isnan(got[0])  # as in PyTorch: -inf * 0
        np.testing.assert_array_equal(got[7:], x[7:])
        np.testing.assert_allclose(got[4:7], [0, 0, 5e-41], rtol=1e-3)
    np.testing.assert_array_equal(gelu[1:4], 0)
    np.testing.assert_array_equal(gelu_tanh[1:4], 0)
    np.testing.assert_allclose(silu[1:4], [0, 0, -88 * math.exp(-88)], rtol=1e-5, atol=1e-42)


def test_the_error_of_gelu() -> None:
    x = np.linspace(-12, 12, 100_001, dtype=np.float32)
    got, expected = call("gelu", x, "none"), gelu64(x)
    assert_close(got, expected, 0, 4e-7 * np.abs(x))
    tail = x < 0
    assert_close(got[tail], expected[tail], 0, 1e-6 * (1 + x[tail] ** 2) * np.abs(expected[tail]))


def test_softmax_of_masks_and_infinities() -> None:
    inf = np.inf
    x = np.array([[0, -inf, 1, -inf, -inf], [-inf] * 5, [0, inf, 0, 0, 0], [1e38, -1e38, 0, 0, 1e38]], np.float32)
    y = call("softmax", x)
    assert_close(y[0], np.array([1 / (1 + math.e), 0, math.e / (1 + math.e), 0, 0]), 2e-6)
    assert np.isnan(y[1]).all()
    assert np.isnan(y[2]).all()
    np.testing.assert_array_equal(y[3], [0.5, 0, 0, 0, 0.5])


@given(st.integers(1, 300), st.floats(-80, 80), st.integers(0, 2**32 - 1))
def test_softmax_sums_to_one_and_ignores_a_shift(n: int, shift: float, seed: int) -> None:
    x = (np.random.default_rng(seed).standard_normal((2, n)) * 10).astype(np.float32)
    y = call("softmax", x)
    np.testing.assert_allclose(y.sum(axis=-1, dtype=np.float64), 1, rtol=2e-6)
    shift_copy = x + np.float32(shift)  # rounding the sum moves each score by up to half an ulp of 128
    np.testing.assert_allclose(call("softmax", shift_copy), y, rtol=4e-5, atol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "rms_norm", "layer_norm"])
def test_long_rows_keep_their_accuracy(name: str) -> None:
    n = 65_536
    x, ones, zeros = normal(1, n), np.ones(n, np.float32), np.zeros(n, np.float32)
    constant = np.full((1, n), np.float32(0.1))  # rounding is one-sided: the worst input of a sum
    if name == "softmax":
        assert_close(call(name, x), softmax64(x), 2e-6)
        assert_close(call(name, constant), softmax64(constant), 2e-6)
    elif name == "rms_norm":
        assert_close(call(name, x, ones, EPS), rms_norm64(x, ones, EPS), 3e-7)
        assert_close(call(name, constant, None, EPS), rms_norm64(constant, ones, EPS), 2e-5)
    else:
        assert_close(call(name, x, ones, zeros, EPS), layer_norm64(x, ones, zeros, EPS), 2e-6, 2e-5)


def test_layer_norm_survives_a_large_mean() -> None:
    x = normal(4, 768) + 1000
    expected = layer_norm64(x, np.ones(768), np.zeros(768), EPS)
    assert_close(call("layer_norm", x, None, None, EPS), expected, 2e-6, 4e-7 * 1000 + 2e-5)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("k", [2, 6, 8, 16, 20, 48, 64])
def test_rotary(k: int, interleaved: bool, poisoned_empty: list[GuardedArray]) -> None:
    x, angles = normal(2, 3, 5, k), normal(5, k // 2)
    cos, sin = np.cos(angles), np.sin(angles)
    y = call("rotary", x, cos, sin, interleaved)
    # The definition: pairs are complex numbers, rotated by e^(i angle).
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., : k // 2], x[..., k // 2 :])
    rotated = (first.astype(np.float64) + 1j * second) * np.exp(1j * angles.astype(np.float64))
    got = y[..., ::2] + 1j * y[..., 1::2] if interleaved else y[..., : k // 2] + 1j * y[..., k // 2 :]
    np.testing.assert_allclose(got, rotated, atol=2e-6)
    poisoned_empty[0].check()


# attention


def attention64(q: Array, k: Array, v: Array, scale: float) -> Array:
    groups = q.shape[1] // k.shape[1]
    k, v = (np.repeat(a.astype(np.float64), groups, axis=1) for a in (k, v))
    return softmax64(q.astype(np.float64) @ k.swapaxes(2, 3) * scale) @ v


@pytest.mark.parametrize("s", [1, 2, 3, 9, 64, 257])
@pytest.mark.parametrize(
    ("batch", "heads", "kv_heads", "width"), [(1, 6, 6, 48), (2, 8, 4, 8), (3, 4, 1, 5), (1, 3, 3, 100)]
)
def test_attention_decode_reads_a_view_of_a_longer_cache(
    batch: int, heads: int, kv_heads: int, width: int, s: int, poisoned_empty: list[GuardedArray]
) -> None:
    q = normal(batch, heads, 1, width)
    # values beyond the position must not matter
    cache = np.full((2, batch, kv_heads, s + 5, width), np.nan, np.float32)
    cache[..., :s, :] = normal(2, batch, kv_heads, s, width)
    k, v = cache[..., :s, :]
    got = call("attention_decode", q, k, v, width**-0.5)
    expected = attention64(q, k, v, width**-0.5)
    assert_close(got, expected, 0, 4e-6 * np.abs(v).max())
    result, *scratch = poisoned_empty
    result.check()
    for array in scratch:  # threads leave parts of it unwritten
        array.check_outside()


def test_attention_decode_takes_any_layout() -> None:
    q, k, v = normal(2, 4, 1, 16), normal(2, 2, 7, 16), normal(2, 2, 7, 16)
    expected = attention64(q, k, v, 0.25)
    positions_first = [np.ascontiguousarray(a.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for a in (k, v)]
    columns_first = [np.asfortranarray(a) for a in (k, v)]
    reversed_rows = [a[:, :, ::-1][:, :, ::-1] for a in (k, v)]
    mixed = [(k, positions_first[1]), (positions_first[0], v)]
    for keys, values in (positions_first, columns_first, reversed_rows, *mixed):
        assert_close(call("attention_decode", q, keys, values, 0.25), expected, 0, 2e-5)


def test_attention_decode_survives_large_scores() -> None:
    q, k, v = normal(1, 1, 1, 8) * 1000, normal(1, 1, 5, 8), normal(1, 1, 5, 8)
    assert_close(call("attention_decode", q, k, v, 1.0), attention64(q, k, v, 1.0), 0, 1e-3)


# matmul and linear


def bound(a: Array, b: Array) -> Array:
    """A few rounding errors of each product: K / 4 + 8 ulp of Σ|a||b|, where ordered summation allows K."""
    k = a.shape[-1]
    return (k / 4 + 8) * 2**-23 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))


SIZES = [
    (1, 1, 1), (1, 7, 9), (2, 3, 5), (3, 33, 2), (4, 8, 8), (4, 100, 31), (5, 1, 3), (6, 16, 1), (8, 9, 8),
    (13, 385, 17),
    (1, 384, 2050), (2, 500, 33), (131, 20, 1), (129, 390, 9), (5, 800, 1030), (33, 64, 33), (150, 31, 1),
    (260, 20, 17),
]  # fmt: skip


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_matmul(size: tuple[int, int, int], layout: str, poisoned_empty: list[GuardedArray]) -> None:
    m, k, n = size
    a = normal(m, k) if layout[0] == "N" else normal(k, m).T
    b = normal(k, n) if layout[1] == "N" else normal(n, k).T
    c = matmul(a, b)
    assert_close(c, a.astype(np.float64) @ b.astype(np.float64), 0, bound(a, b))
    poisoned_empty[0].check()
    scratch = poisoned_empty[1]
    scratch.array[...] = 0
    scratch.check()


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((3, 5, 7), (3, 7, 9)), ((2, 3, 5, 7), (7, 9)), ((5, 7), (4, 7, 9)), ((2, 1, 5, 7), (3, 7, 9)),
        ((2, 1, 1, 7), (1, 3, 7, 9)),
        ((7,), (7, 9)), ((5, 7), (7,)), ((7,), (7,)), ((3, 5, 7), (7,)), ((7,), (3, 7, 9)), ((0, 5, 7), (0, 7, 9)),
        ((5, 0), (0, 9)), ((0, 7), (7, 9)), ((2, 5, 7), (2, 7, 0)),
        ((2, 3, 0), (0, 3)), ((0, 3, 4), (4, 5)),
    ],
)  # fmt: skip
def test_matmul_batches_broadcast_as_numpy_does(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> None:
    a, b = normal(*a_shape), normal(*b_shape)
    np.testing.assert_allclose(matmul(a, b), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


def test_matmul_takes_any_strides() -> None:
    big = normal(40, 60)
    record = np.zeros((20, 30), np.dtype([("tag", np.int8), ("x", np.float32)]))  # packed: strides of five bytes
    record["x"] = normal(20, 30)
    views = [
        big[::2, ::2],
        big[:20, :30],
        big[20:, 30:][::-1, ::-1],
        record["x"],
        np.broadcast_to(normal(30), (20, 30)),
    ]
    views += [np.broadcast_to(normal(20, 1), (20, 30))]
    for a in views:
        for b in views:
            expected = a.astype(np.float64) @ b.T.astype(np.float64)
            assert_close(matmul(a, b.T), expected, 0, bound(a, b.T))
        few = a[5:7]
        assert_close(matmul(few, a.T), few.astype(np.float64) @ a.T.astype(np.float64), 0, bound(few, a.T))


def test_matmul_propagates_nan_and_infinity_to_the_right_elements() -> None:
    a, b = normal(9, 9), normal(9, 9)
    a[4, 4], b[2, 2] = np.nan, np.inf
    c = matmul(a, b)
    assert np.isnan(c[4]).all()
    assert np.isfinite(np.delete(np.delete(c, 4, 0), 2, 1)).all()
    assert not np.isfinite(c[:, 2]).any()


def to_bfloat16(x: Array) -> Array:
    return (np.asarray(x, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def from_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


WEIGHTS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "float32": (lambda w: w, lambda w: w),
    "float16": (lambda w: w.astype(np.float16), lambda w: w.astype(np.float32)),
    "bfloat16": (to_bfloat16, from_bfloat16),
}


@pytest.mark.parametrize("dtype", WEIGHTS)
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 11, 16, 17, 29])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 2), (8, 5), (31, 4), (64, 33), (100, 7), (400, 100)])
def test_linear(dtype: str, rows: int, k: int, n: int, poisoned_empty: list[GuardedArray]) -> None:
    narrow, widen = WEIGHTS[dtype]
    x, weight, bias = normal(rows, k), narrow(normal(n, k)), normal(n)
    w = widen(weight)
    got = call("linear", x, weight, bias)
    expected = x.astype(np.float64) @ w.T.astype(np.float64) + bias
    assert_close(got, expected, 2**-23, bound(x, w.T) + 2**-22 * np.abs(bias))
    poisoned_empty[0].check()
    for memory in poisoned_empty:
        memory.check_outside()
    assert_close(call("linear", x, weight, None), expected - bias, 1e-5, bound(x, w.T) + 1e-6)


@pytest.mark.threads
@pytest.mark.parametrize(("rows", "k", "n"), [(600, 400, 33), (200, 400, 100), (520, 70, 64), (600, 60, 1)])
def test_linear_of_many_rows_adds_the_bias(rows: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    x, weight, bias = normal(rows, k), normal(n, k), normal(n)
    got = kernels.run("linear", x, weight, bias)
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    assert_close(got, expected, 2**-23, bound(x, weight.T) + 2**-22 * np.abs(bias))
    strided = np.ascontiguousarray(x.reshape(4, -1, k).swapaxes(0, 1)).swapaxes(0, 1)
    np.testing.assert_allclose(kernels.run("linear", strided, weight, bias).reshape(rows, n), expected, atol=1e-3)

    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    np.testing.assert_array_equal(kernels.run("linear", x, weight, bias), got)


@pytest.mark.parametrize("dtype", WEIGHTS)
def test_linear_reads_rows_of_a_wider_matrix(dtype: str) -> None:
    narrow, widen = WEIGHTS[dtype]
    x, weight = normal(2, 3, 20), narrow(normal(10, 40))
    for view in (weight[:, :20], weight[::2, 7:27], weight[:, ::2], weight[::-1, 20:]):
        expected = x.astype(np.float64) @ widen(view).T.astype(np.float64)
        np.testing.assert_allclose(call("linear", x, view, None), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.threads
@pytest.mark.parametrize("dtype", WEIGHTS)
@pytest.mark.parametrize("rows", [1, 4, 7])
def test_linear_in_parts(rows: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    x, weight, bias = normal(rows, 20), WEIGHTS[dtype][0](normal(10, 20)), normal(10)
    expected = [call("linear", x, weight, bias), call("linear", x, weight[::2], None)]

    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads, "thread_count", lambda: 10)
    got = [call("linear", x, weight, bias), call("linear", x, weight[::2], None)]
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(library.BACKEND != "native", reason="in WASM the kernel takes all that is worth a call")
def test_linear_natively_handles_shapes_that_are_slow_in_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    if not LIBRARY.enabled:
        pytest.skip("kernels are switched off")
    if sys.platform == "darwin":
        pytest.skip("Apple's BLAS is slow at nothing")
    from tallow.kernels.bindings import blas, matmul

    monkeypatch.setattr(blas, "thread_count", lambda: 1)
    monkeypatch.setattr(matmul, "HAS_LONG_VECTORS", False)
    large = np.empty((2**20, 5), np.float32)  # 20 MiB
    for rows, weight, backend in [(1, large, "native"), (1, large[:9], "array"), (257, large, "array")]:
        assert kernels.pick("linear", "cpu", np.zeros((rows, 5), np.float32), weight, None).backend == backend
    weight = normal(2000, 2000)
    for rows, backend in [(1, "native"), (2, "native"), (256, "native"), (257, "array")]:
        assert kernels.pick("linear", "cpu", normal(rows, 2000), weight, None).backend == backend
    for rows in 1, 9:
        assert kernels.pick("linear", "cpu", normal(rows, 2000), weight.T, None).backend == "array"
    assert kernels.pick("linear", "cpu", normal(1, 360), normal(360, 360), None).backend == "array"  # 0.5 MB


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_linear_reads_every_half_exactly(dtype: str) -> None:
    every = np.arange(2**16, dtype=np.uint16)
    weight = (every.view(np.float16) if dtype == "float16" else every)[:, None]
    with np.errstate(invalid="ignore"):  # of signalling NaN, on some processors
        expected = weight.astype(np.float32) if dtype == "float16" else from_bfloat16(weight)
    for width in (1, 16):  # the scalar tail of a row, and whole vectors
        w = np.zeros((2**16, width), weight.dtype)
        w[:, :1] = weight
        x = np.zeros((1, width), np.float32)
        x[0, 0] = 1
        np.testing.assert_array_equal(call("linear", x, w, None)[0], expected[:, 0])


def test_bindings_refuse_mismatched_shapes() -> None:
    x = normal(4, 8)
    bad: list[tuple[str, tuple[Any, ...]]] = [
        ("rms_norm", (x, normal(7), EPS)),
        ("layer_norm", (x, normal(8), normal(9), EPS)),
        ("silu_mul", (x, normal(4, 9))),
        ("gelu_backward", (x, normal(4, 9), "none")),
        ("gelu_backward", (x, x, "sigmoid")),
        ("scaled_exp", (x, normal(4), normal(3))),
        ("scaled_exp", (x, normal(8), normal(8))),
        (
            "cross_entropy_backward",
            (x, x, np.arange(3, dtype=np.int64), None, -100, 0.0, normal(4), normal(4), x.dtype),
        ),
        ("layer_norm_backward", (x, normal(3, 8), None, EPS)),
        ("layer_norm_backward", (x, x, normal(7), EPS)),
        ("linear", (x, normal(5, 7).astype(np.float16), None)),
        ("linear", (x, normal(5, 8).astype(np.float16), normal(4))),
        ("rotary", (x, normal(4, 3), normal(4, 3), True)),
        ("rotary", (normal(4, 7), normal(4, 3), normal(4, 3), True)),
        ("attention_decode", (normal(1, 3, 1, 8), normal(1, 2, 5, 8), normal(1, 2, 5, 8), 1.0)),
        ("attention_decode", (normal(1, 2, 1, 8), normal(1, 2, 5, 8), normal(1, 2, 4, 8), 1.0)),
        ("attention_decode", (normal(1, 2, 1, 8), normal(1, 2, 0, 8), normal(1, 2, 0, 8), 1.0)),
        *((name, (x.astype(np.float64),)) for name in ("softmax", "sigmoid", "silu")),
        ("gelu", (x, "sigmoid")),
        ("rms_norm", (x, normal(8).astype(np.float64), EPS)),
    ]
    from tallow.errors import TallowError

    for name, args in bad:
        with pytest.raises(TallowError):
            call(name, *args)
    for a, b in [(x, x), (normal(2, 3, 4), normal(3, 4, 5)), (normal(3, 4, 5), normal(2, 5, 6))]:
        with pytest.raises(TallowError):
            matmul(a, b)


@pytest.mark.parametrize("name", ["softmax", "sigmoid", "silu"])
def test_empty_arrays(name: str) -> None:
    for shape in ((0,), (3, 0), (0, 3)):
        assert call(name, np.zeros(shape, np.float32)).shape == shape


def test_the_kernel_table_runs_them() -> None:
    x = normal(4, 8)
    if not LIBRARY.enabled:
        pytest.skip("kernels are switched off")
    with kernels.require(library.BACKEND):
        assert_close(kernels.run("softmax", x), softmax64(x), 2e-6)
    assert ctypes.sizeof(library.SIZE) == np.dtype(np.intp).itemsize


@pytest.mark.skipif(library.BACKEND != "wasm", reason="natively NumPy's BLAS multiplies")
def test_small_products_use_numpy() -> None:
    if not LIBRARY.enabled:
        pytest.skip("kernels are switched off")
    assert kernels.pick("matmul", "cpu", normal(64, 64), normal(64, 64)).backend == "wasm"
    assert kernels.pick("matmul", "cpu", normal(8, 8), normal(8, 8)).backend == "array"
    assert kernels.pick("matmul", "cpu", normal(64, 64), normal(65, 64)).backend == "array"


# In place and unaligned, for kernels of several arrays.


def shift_copy(array: Array, shift: int) -> Array:
    """Return a copy that starts `shift` elements off any alignment."""
    copy = GuardedArray(*array.shape, shift=shift).array
    copy[...] = array
    return copy


@pytest.mark.parametrize("n", [1, 7, 8, 19, 64])
@pytest.mark.parametrize("onto", [0, 1])
def test_silu_mul_in_place_of_either(n: int, onto: int) -> None:
    a, b = normal(n), normal(n)
    operands = [GuardedArray(n, shift=1), GuardedArray(n, shift=2)]
    operands[0].array[...], operands[1].array[...] = a, b
    out = operands[onto]
    c_function("tl_silu_mul_f32", P, P, P, N)(*(pointer(x.array) for x in (out, *operands)), n)
    assert_close(out.check(), silu64(a) * b, 6e-7)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("k", [2, 6, 16, 20, 48])
def test_rotary_in_place(k: int, interleaved: bool) -> None:
    x, angles = normal(2, 5, k), normal(5, k // 2)
    expected = call("rotary", x, np.cos(angles), np.sin(angles), interleaved)
    y, cos, sin = GuardedArray(2, 5, k, shift=3), shift_copy(np.cos(angles), 1), shift_copy(np.sin(angles), 2)
    y.array[...] = x
    rotary = c_function("tl_rotary_f32", P, P, P, P, N, N, N, I)
    rotary(pointer(y.array), pointer(y.array), pointer(cos), pointer(sin), 2, 5, k, interleaved)
    # fused multiply-add or not, as the compiler chose
    np.testing.assert_allclose(y.check(), expected, rtol=0, atol=1e-6)


def test_attention_decode_in_place_of_the_query() -> None:
    q, k, v = normal(1, 4, 1, 10), shift_copy(normal(1, 2, 7, 10), 1), shift_copy(normal(1, 2, 7, 10), 3)
    y, scratch = GuardedArray(1, 4, 1, 10, shift=1), GuardedArray(2 * 7, shift=2)
    y.array[...] = q
    strides = (D * 3)(0, 70, 10)
    attention = c_function("tl_attention_decode_f32", *[P] * 4, *[N] * 5, P, P, P, F)
    addresses = [pointer(x) for x in (y.array, y.array, k, v)]
    attention(*addresses, 1, 4, 2, 7, 10, strides, strides, pointer(scratch.array), 0.3)
    assert_close(y.check(), attention64(q, k, v, 0.3), 0, 2e-5)
    scratch.check()


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("size", [(1, 13, 20), (20, 13, 1), (3, 9, 11), (9, 33, 17)], ids=str)
def test_products_off_alignment(size: tuple[int, int, int], shift: int) -> None:
    m, k, n = size
    a, b, w = shift_copy(normal(m, k), shift), shift_copy(normal(k, n), 4 - shift), shift_copy(normal(n, k), shift)
    assert_close(matmul(a, b), a.astype(np.float64) @ b.astype(np.float64), 0, bound(a, b))
    assert_close(matmul(a, w.T), a.astype(np.float64) @ w.T.astype(np.float64), 0, bound(a, w.T))
    assert_close(call("linear", a, w, None), a.astype(np.float64) @ w.T.astype(np.float64), 0, bound(a, w.T))

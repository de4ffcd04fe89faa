"""Compiled log_softmax, and the gradients of softmax and log_softmax, fulfil the contracts of their C files.

Expected values are the formulas in float64. Outputs lie between guards and are poisoned first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels import library

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

ROWS = 3
LENGTHS = [*range(1, 20), 31, 32, 33, 257]
rng = np.random.default_rng(13)


def normal(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def shift_copy(array: Array, shift: int) -> Array:
    """Return a copy that starts `shift` elements off any alignment."""
    copy = GuardedArray(*array.shape, shift=shift).array
    copy[...] = array
    return copy


def compiled(name: str, *args: Any) -> Array:
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def softmax64(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_backward64(g: Array, y: Array) -> Array:
    y, g = y.astype(np.float64), g.astype(np.float64)
    return y * (g - (g * y).sum(axis=-1, keepdims=True))


def log_softmax_backward64(g: Array, y: Array) -> Array:
    return g - np.exp(y.astype(np.float64)) * g.astype(np.float64).sum(axis=-1, keepdims=True)


SOFTMAX_GRADIENTS = {
    "tl_softmax_backward_f32": (softmax_backward64, softmax64),
    "tl_log_softmax_backward_f32": (log_softmax_backward64, lambda x: np.log(softmax64(x))),
}


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", SOFTMAX_GRADIENTS)
def test_softmax_backward(name: str, n: int) -> None:
    run = library.function(name, None, *[library.POINTER] * 3, library.SIZE, library.SIZE)
    formula, forward = SOFTMAX_GRADIENTS[name]
    for shift in range(3):
        g, y = shift_copy(normal(ROWS, n), shift), shift_copy(forward(normal(ROWS, n) * 3), shift + 1)
        expected = formula(g, y)
        dx = GuardedArray(ROWS, n, shift=3 - shift)
        run(dx.array.ctypes.data, g.ctypes.data, y.ctypes.data, ROWS, n)
        weights = np.exp(y) if "log" in name else y
        allowed = 1e-6 * (np.abs(g) + weights * np.abs(g).sum(axis=-1, keepdims=True))
        assert (np.abs(dx.check() - expected) <= allowed).all()
        run(g.ctypes.data, g.ctypes.data, y.ctypes.data, ROWS, n)  # in place
        np.testing.assert_array_equal(g, dx.array)


def test_log_softmax() -> None:
    x = normal(5, 37) * 10 + 1000
    np.testing.assert_allclose(compiled("log_softmax", x), np.log(softmax64(x)), rtol=3e-7, atol=1e-6)
    x[1, 3], x[2, 4], x[3] = np.nan, -np.inf, -np.inf
    y = compiled("log_softmax", x)
    assert np.isnan(y[[1, 3]]).all()
    assert y[2, 4] == -np.inf
    assert np.isfinite(np.delete(y[2], 4)).all()


COLUMN_SHAPES = [((1, 3), 0), ((7, 5), 0), ((4, 21, 33), 1), ((5, 2, 129), 0), ((2, 3, 70, 1), 2), ((40, 64), 0)]


def with_columns_last(fn: Any, dim: int, *arrays: Array) -> Array:
    return fn(*(x.swapaxes(dim, -1) for x in arrays)).swapaxes(dim, -1)


@pytest.mark.parametrize(("shape", "dim"), COLUMN_SHAPES)
def test_columns(shape: tuple[int, ...], dim: int, poisoned_empty: list[GuardedArray]) -> None:
    x, g = shift_copy(normal(*shape) * 5, 1), shift_copy(normal(*shape), 2)
    y, log_y = compiled("softmax_columns", x, dim), compiled("log_softmax_columns", x, dim)
    expected = with_columns_last(softmax64, dim, x)
    np.testing.assert_allclose(y, expected, rtol=4e-6)
    np.testing.assert_allclose(log_y, np.log(expected), rtol=3e-7, atol=2e-6)
    for name, formula, value in (
        ("softmax_columns_backward", softmax_backward64, y),
        ("log_softmax_columns_backward", log_softmax_backward64, log_y),
    ):
        dx = compiled(name, g, value, dim)
        allowed = 1e-5 * np.abs(g).max(axis=dim, keepdims=True)
        assert (np.abs(dx - with_columns_last(formula, dim, g, value)) <= allowed).all()
    assert len(poisoned_empty) == 4
    for array in poisoned_empty:
        array.check()


def test_columns_in_place() -> None:
    x = normal(9, 70)
    expected = compiled("softmax_columns", x, 0)
    size = library.SIZE
    run = library.function("tl_softmax_columns_f32", None, library.POINTER, library.POINTER, *[size] * 4)
    run(x.ctypes.data, x.ctypes.data, 0, 70, 9, 70)
    np.testing.assert_array_equal(x, expected)


def test_columns_of_masks_and_infinities() -> None:
    x = normal(6, 20)
    x[2, 3], x[1, 4], x[:, 5], x[0, 6] = np.nan, -np.inf, -np.inf, np.inf
    for name in ("softmax_columns", "log_softmax_columns"):
        y = compiled(name, x, 0)
        assert np.isnan(y[:, [3, 5, 6]]).all()
        assert y[1, 4] == (-np.inf if "log" in name else 0)
        assert np.isfinite(np.delete(np.delete(y, [3, 5, 6], axis=1), 1, axis=0)).all()


@pytest.mark.threads
def test_threads_change_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    x, g = normal(3, 11, 75), normal(3, 11, 75)
    alone = [compiled("log_softmax_columns", x, 1), compiled("softmax_columns_backward", g, x, 1)]
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    for mine, one in zip(
        [compiled("log_softmax_columns", x, 1), compiled("softmax_columns_backward", g, x, 1)], alone, strict=True
    ):
        np.testing.assert_array_equal(mine, one)


def test_mismatched_shapes_are_refused() -> None:
    for name in ("softmax_columns_backward", "log_softmax_columns_backward"):
        with pytest.raises(ShapeError):
            compiled(name, normal(4, 8), normal(4, 9), 0)
    for name in ("softmax_backward", "log_softmax_backward"):
        with pytest.raises(ShapeError):
            compiled(name, normal(4, 8), normal(4, 9))

"""Compiled max pooling and its gradient fulfil the contract of their C file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import POISON, GuardedArray

from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels import library

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

CASES: list[tuple[Sizes, Sizes, Sizes, Sizes, Sizes, Sizes]] = [  # x, kernel, stride, before, dilation, out
    ((2, 3, 6, 8), (2, 2), (2, 2), (0, 0), (1, 1), (3, 4)),
    ((4, 28, 28), (2, 2), (2, 2), (0, 0), (1, 1), (14, 14)),
    ((2, 2, 5, 35), (2, 2), (2, 2), (0, 0), (1, 1), (2, 17)),
    ((1, 2, 7, 9), (3, 3), (2, 2), (1, 1), (1, 1), (4, 5)),
    ((2, 9, 30), (3, 2), (1, 1), (1, 1), (2, 3), (7, 29)),
    ((1, 5, 5), (2, 2), (2, 2), (0, 0), (1, 1), (3, 3)),  # ceil_mode: the last windows reach past the end
    ((1, 1, 1), (1, 1), (1, 1), (0, 0), (1, 1), (1, 1)),
    ((3, 2, 50), (4,), (3,), (2,), (1,), (17,)),
]
rng = np.random.default_rng(6)


def windows_of(x: Array, case: tuple[Any, ...]) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Yield each window's position in an output plane, and the positions of its elements inside the input, in order."""
    _, kernel, stride, before, dilation, out = case
    spatial = x.shape[-len(kernel) :]
    windows = []
    for window in np.ndindex(*out):
        places = []
        for element in np.ndindex(*kernel):
            at = tuple(
                w * s + e * d - b for w, s, e, d, b in zip(window, stride, element, dilation, before, strict=True)
            )
            if all(0 <= a < n for a, n in zip(at, spatial, strict=True)):
                places.append(at)
        windows.append((window, places))
    return windows


def expected(x: Array, g: Array, case: tuple[Any, ...]) -> tuple[Array, Array]:
    """Compute the result window by window."""
    y, dx = np.empty(g.shape, np.float32), np.zeros(x.shape)
    for window, places in windows_of(x, case):
        values = np.stack([x[(..., *at)] for at in places])
        y[(..., *window)] = values.max(axis=0)
        first = values.argmax(axis=0)
        for i, at in enumerate(places):
            dx[(..., *at)] += np.where((first == i) & ~np.isnan(y[(..., *window)]), g[(..., *window)], 0)
    return y, dx


def compiled(name: str, *args: Any) -> Array:
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


@pytest.mark.parametrize("values", ["distinct", "ties", "lowest"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward_and_backward(case: tuple[Any, ...], values: str, poisoned_empty: list[GuardedArray]) -> None:
    shape, *settings, out = case
    x = rng.standard_normal(shape).astype(np.float32)
    if values == "ties":
        x = np.round(x)
    elif values == "lowest":
        x[x < 1] = -np.inf
    g = rng.standard_normal((*shape[: len(shape) - len(out)], *out)).astype(np.float32)
    wanted_y, wanted_dx = expected(x, g, case)
    y, places = compiled("max_pool", x, *settings, out)
    dx = compiled("max_pool_backward", g, x, places, *settings)
    np.testing.assert_array_equal(y, wanted_y)
    np.testing.assert_allclose(dx, wanted_dx, rtol=1e-6, atol=1e-6)
    for guarded_array in poisoned_empty:
        guarded_array.check_outside()
    assert not any((array == POISON).any() for array in (y, dx)), "an element was not written"


def test_nan_is_the_maximum_and_gets_no_gradient() -> None:
    x = rng.standard_normal((1, 4, 40)).astype(np.float32)
    x[0, 1, 5] = x[0, 2, 39] = np.nan
    g = np.ones((1, 2, 20), np.float32)
    y, places = compiled("max_pool", x, (2, 2), (2, 2), (0, 0), (1, 1), (2, 20))
    dx = compiled("max_pool_backward", g, x, places, (2, 2), (2, 2), (0, 0), (1, 1))
    assert np.isnan(y).sum() == 2
    assert np.isnan(y[0, 0, 2])
    assert np.isnan(y[0, 1, 19])
    assert dx.sum() == 38
    assert set(np.unique(dx)) == {0, 1}


def test_any_layout() -> None:
    x = rng.standard_normal((2, 6, 8)).astype(np.float32)
    settings = ((3, 3), (1, 1), (1, 1), (1, 1))
    y, places = compiled("max_pool", x, *settings, (6, 8))
    dx = compiled("max_pool_backward", y, x, places, *settings)
    for other in (np.asfortranarray(x), x[:, ::-1].copy()[:, ::-1]):
        np.testing.assert_array_equal(compiled("max_pool", other, *settings, (6, 8))[0], y)
        g, again = np.asfortranarray(y), np.asfortranarray(places)
        np.testing.assert_array_equal(compiled("max_pool_backward", g, other, again, *settings), dx)


def test_mismatched_shapes_are_refused() -> None:
    x, g = np.zeros((2, 4, 4), np.float32), np.zeros((2, 2, 2), np.float32)
    two, no, one = (2, 2), (0, 0), (1, 1)
    places = np.zeros(g.shape, np.int32)
    for name, args in [
        ("max_pool", (x, two, (0, 1), no, one, two)),
        ("max_pool", (x, two, two, (-1, 0), one, two)),
        ("max_pool", (x, two, two, no, one, (2,))),
        ("max_pool", (x, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), (2, 4, 4))),
        ("max_pool_backward", (g[:1], x, places, two, two, no, one)),
        ("max_pool_backward", (g[:1], x, places[:1], two, two, no, one)),
        ("max_pool_backward", (g, x, None, two, two, no, one)),
        ("max_pool_backward", (g, x, places.astype(np.int64), two, two, no, one)),
    ]:
        with pytest.raises(ShapeError):
            compiled(name, *args)


@pytest.mark.threads
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    x = rng.standard_normal((5, 9, 9)).astype(np.float32)
    settings = ((3, 3), (2, 2), (1, 1), (1, 1))
    y, places = compiled("max_pool", x, *settings, (5, 5))
    dx = compiled("max_pool_backward", y, x, places, *settings)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    np.testing.assert_array_equal(compiled("max_pool", x, *settings, (5, 5))[0], y)
    np.testing.assert_array_equal(compiled("max_pool_backward", y, x, places, *settings), dx)


def test_a_place_outside_of_the_plane_is_not_written() -> None:
    x, g, places = np.zeros((2, 4), np.float32), np.ones((2, 2), np.float32), np.array([[4, -5], [3, 2**30]], np.int32)
    dx = compiled("max_pool_backward", g, x, places, (2,), (2,), (0,), (1,))
    np.testing.assert_array_equal(dx, [[0, 0, 0, 0], [0, 0, 0, 1]])

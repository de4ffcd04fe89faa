"""The compiled channel normalization fulfils the contract of its C file, including shared statistics.

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

RTOL = 2e-5  # relative to the largest element: sums of up to 400 products
EPS = 1e-3
BATCH, GROUPS = 0, 2  # the axis that shares statistics
CASES = [  # x, the split of its channels, which parts share statistics
    ((3, 4, 9), (3, 4), BATCH),
    ((4, 6, 25, 7), (4, 6), BATCH),  # 4200 elements, which are computed as rows; fewer as columns
    ((2, 3, 9, 80), (2, 3), BATCH),
    ((2, 6, 5, 7), (2, 6), BATCH),
    ((1, 2, 33), (1, 2), BATCH),
    ((2, 6, 5, 7), (2, 3, 2), GROUPS),
    ((3, 4, 20), (3, 1, 4), GROUPS),
    ((2, 5, 2, 3, 4), (2, 5, 1), GROUPS),
    ((9, 3), (9, 3), BATCH),
    ((70, 17), (70, 17), BATCH),
    ((130, 150), (130, 150), BATCH),
    ((5, 64), (5, 64), BATCH),
]
rng = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def compiled(name: str, *args: Any) -> Any:
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def formulas(
    x: Array, channels: tuple[int, ...], shared: int, weight: Array, bias: Array, g: Array
) -> tuple[Array, ...]:
    """Return y, mean, var, dx, dw and db in float64."""
    rows, g = (a.astype(np.float64).reshape(*channels, -1) for a in (x, g))
    w, b = (p.astype(np.float64).reshape(1, *channels[1:], 1) for p in (weight, bias))
    mean, var = (f(rows, axis=(shared, -1), keepdims=True) for f in (np.mean, np.var))
    r = 1 / np.sqrt(var + EPS)
    n, h = (rows - mean) * r, g * w
    of_h, of_hn = (a.mean(axis=(shared, -1), keepdims=True) for a in (h, h * n))
    dw, db = (a.sum(axis=(0, -1)).reshape(-1) for a in (g * n, g))
    return (
        (n * w + b).reshape(x.shape),
        mean[..., 0],
        var[..., 0],
        (r * (h - of_h - n * of_hn)).reshape(x.shape),
        dw,
        db,
    )


def forward_and_backward(
    x: Array, channels: tuple[int, ...], shared: int, weight: Array | None, bias: Array | None, g: Array
) -> list[Array]:
    y, mean, var = compiled("channel_norm", x, channels, shared, weight, bias, EPS)
    return [y, mean, var, *compiled("channel_norm_backward", g, x, channels, shared, mean, var, weight, EPS)]


def assert_agree(got: list[Array], expected_values: tuple[Array, ...]) -> None:
    for mine, value in zip(got, expected_values, strict=True):
        assert mine.dtype == np.float32
        assert mine.shape == value.shape
        np.testing.assert_allclose(mine, value, rtol=RTOL, atol=RTOL * np.abs(value).max())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward_and_backward(case: tuple[Any, ...], poisoned_empty: list[GuardedArray]) -> None:
    shape, channels, shared = case
    x, g, weight, bias = normal(*shape) + 1, normal(*shape), normal(shape[1]), normal(shape[1])
    got = forward_and_backward(x, channels, shared, weight, bias, g)
    assert_agree(got, formulas(x, channels, shared, weight, bias, g))
    for array in poisoned_empty:
        array.check()
    ones, zeros = np.ones(shape[1]), np.zeros(shape[1])
    assert_agree(
        forward_and_backward(x, channels, shared, None, None, g), formulas(x, channels, shared, ones, zeros, g)
    )


def test_any_layout() -> None:
    x, g, weight, bias = normal(2, 6, 5, 7), normal(2, 6, 5, 7), normal(6), normal(6)
    expected_values = formulas(x, (2, 6), BATCH, weight, bias, g)
    last = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for a in (x, g)]
    assert_agree(
        forward_and_backward(last[0], (2, 6), BATCH, np.repeat(weight, 2)[::2], bias, last[1]), expected_values
    )


def test_a_large_mean_does_not_cancel_the_variance() -> None:
    x = normal(4, 3, 50) + 1000
    _, _, var = compiled("channel_norm", x, (4, 3), BATCH, None, None, EPS)
    np.testing.assert_allclose(var[0], x.astype(np.float64).var(axis=(0, 2)), rtol=1e-4)
    x = normal(200, 16) + 1000
    _, _, var = compiled("channel_norm", x, x.shape, BATCH, None, None, EPS)
    np.testing.assert_allclose(var[0], x.astype(np.float64).var(axis=0), rtol=1e-4)


def test_mismatched_shapes_are_refused() -> None:
    x, weight = normal(2, 4, 9), normal(4)
    one = normal(1, 4)
    bad = [
        ("channel_norm", (x, (2, 3), BATCH, weight, None, EPS)),
        ("channel_norm", (x, (4, 2), BATCH, weight, None, EPS)),
        ("channel_norm", (x, (2, 4), BATCH, weight[:3], None, EPS)),
        ("channel_norm", (x, (2, 4), BATCH, weight, normal(5), EPS)),
        ("channel_norm", (x[:0], (0, 4), BATCH, weight, None, EPS)),
        ("channel_norm_backward", (x[:, :, :8], x, (2, 4), BATCH, one, one, weight, EPS)),
        ("channel_norm_backward", (x, x, (2, 4), BATCH, one[:, :3], one, weight, EPS)),
        ("channel_norm_backward", (x, x, (2, 4), BATCH, one, normal(2, 4), weight, EPS)),
    ]
    for name, args in bad:
        with pytest.raises(ShapeError):
            compiled(name, *args)


@pytest.mark.threads
@pytest.mark.parametrize(
    ("shape", "channels", "shared"), [((3, 6, 5, 7), (3, 3, 2), GROUPS), ((9, 150), (9, 150), BATCH)]
)
def test_threads_change_nothing(
    shape: tuple[int, ...], channels: tuple[int, ...], shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallow.kernels.bindings import threads

    x, g, weight, bias = normal(*shape), normal(*shape), normal(shape[1]), normal(shape[1])
    alone = forward_and_backward(x, channels, shared, weight, bias, g)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    for a, b in zip(forward_and_backward(x, channels, shared, weight, bias, g), alone, strict=True):
        np.testing.assert_array_equal(a, b)

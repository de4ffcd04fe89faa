"""The compiled convolution and its two adjoints fulfil the contract of their C file.

Expected values are the formula in float64. Outputs and scratch memory lie between guards and are poisoned first.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels import library

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

RTOL = 2e-5  # relative to the largest element: sums of up to 3000 products
CASES: list[tuple[Sizes, Sizes, Sizes, Sizes, Sizes, int]] = [  # x, w, stride, before, dilation, groups
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 9, 11), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 12, 7), (6, 2, 5, 2), (2, 3), (2, 1), (1, 2), 2),
    ((3, 4, 6, 6), (8, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((1, 2, 5, 40), (9, 2, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 2, 4, 4), (3, 2, 3, 3), (1, 1), (5, 6), (3, 3), 1),  # some windows lie in the padding
    ((1, 300, 3, 90), (5, 300, 1, 3), (1, 1), (0, 1), (1, 1), 1),  # a row of y in several tiles
    ((1, 6, 70, 70), (3, 6, 3, 3), (1, 1), (1, 1), (1, 1), 1),  # several tiles of rows
    ((2, 3, 20), (5, 3, 4), (3,), (2,), (2,), 1),
    ((11, 40, 4, 4), (37, 40, 3, 3), (1, 1), (1, 1), (1, 1), 1),  # several blocks of channels, samples in one tile
    ((30, 4, 5, 3), (6, 2, 3, 2), (2, 1), (1, 0), (1, 1), 2),  # several samples in each tile, the last not full
    ((1, 2, 40, 300), (3, 2, 13, 21), (2, 3), (4, 9), (1, 2), 1),  # more positions of a window than rows of a block
    ((1, 2, 9, 2500), (3, 2, 5, 5), (1, 2), (30, 3), (2, 1), 1),  # whole tiles of padding
    # the gradient of w by columns of outputs
    ((1, 50, 3, 90), (20, 50, 1, 3), (1, 1), (0, 1), (1, 1), 1),
    ((1, 6, 70, 70), (18, 6, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((30, 4, 5, 3), (38, 2, 3, 2), (2, 1), (1, 0), (1, 1), 2),
    ((1, 2, 9, 2500), (17, 2, 5, 5), (1, 2), (30, 3), (2, 1), 1),
    # each channel separately
    ((2, 3, 10, 37), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), 3),
    ((2, 3, 13, 21), (6, 1, 5, 4), (2, 3), (3, 2), (2, 1), 3),
    ((1, 2, 4, 4), (2, 1, 3, 3), (1, 1), (5, 6), (3, 3), 2),
    ((2, 2, 12, 9), (2, 1, 2, 3), (5, 4), (0, 1), (1, 1), 2),  # the last rows and columns are in no window
    ((2, 5, 70), (5, 1, 31), (1,), (15,), (1,), 5),
    # rows of the kernel that are read once for several rows of y
    ((2, 3, 4, 1), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), 3),
    ((2, 3, 7, 7), (3, 1, 7, 7), (1, 1), (3, 3), (1, 1), 3),
    ((2, 2, 14, 16), (4, 1, 5, 5), (1, 1), (2, 2), (1, 1), 2),
    ((1, 2, 21, 33), (2, 1, 7, 4), (1, 1), (5, 9), (1, 3), 2),
    ((1, 2, 15, 50), (2, 1, 3, 3), (1, 1), (0, 0), (1, 1), 2),
    ((2, 2, 28, 31), (2, 1, 3, 3), (2, 2), (1, 1), (1, 1), 2),
    ((2, 2, 9, 68), (4, 1, 3, 2), (2, 2), (1, 0), (1, 2), 2),
    ((2, 2, 33, 15), (2, 1, 5, 5), (2, 2), (2, 2), (1, 1), 2),
    ((1, 2, 6, 5), (2, 1, 5, 3), (2, 2), (4, 40), (1, 1), 2),  # whole vectors of padding
    # two images side by side in a vector
    ((3, 5, 7, 7), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5),
    ((2, 3, 20, 8), (3, 1, 7, 4), (1, 1), (3, 2), (1, 1), 3),
    ((1, 3, 9, 12), (3, 1, 5, 5), (1, 1), (1, 0), (1, 1), 3),
    ((2, 5, 14, 14), (5, 1, 5, 5), (2, 2), (2, 2), (1, 1), 5),
    ((3, 3, 16, 9), (3, 1, 3, 3), (2, 2), (0, 1), (1, 1), 3),
    # the gradient of x by turned kernels
    ((2, 9, 14, 14), (37, 9, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 20, 7, 8), (12, 10, 3, 3), (1, 1), (2, 0), (1, 1), 2),
    ((1, 70, 11, 10), (9, 70, 5, 5), (1, 1), (4, 2), (1, 1), 1),
    ((2, 8, 15, 33), (9, 8, 3, 2), (1, 1), (2, 1), (2, 1), 1),
    ((2, 3, 9, 11), (40, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),  # few positions of a window for many outputs
    # windows that are not gathered
    ((9, 6, 14, 14), (16, 6, 5, 5), (1, 1), (0, 0), (1, 1), 1),
    ((19, 16, 4, 5), (64, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((11, 16, 7, 9), (60, 8, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((8, 48, 4, 3), (48, 48, 3, 3), (1, 1), (1, 1), (1, 1), 1),  # several blocks of channels; one vector after a pair
    ((10, 18, 6, 5), (30, 18, 3, 4), (2, 3), (4, 6), (2, 1), 1),  # some windows lie in the padding
    ((8, 16, 12, 67), (32, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1),  # several tiles of rows
    ((8, 12, 20), (16, 12, 7), (1,), (3,), (1,), 1),
    ((1, 24, 30, 40), (30, 24, 3, 2), (2, 1), (1, 0), (1, 2), 1),
    ((9, 48, 6, 6), (600, 48, 3, 3), (1, 1), (1, 1), (1, 1), 1),  # gradients of a part of a window at once
]
rng = np.random.default_rng(5)


def normal(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def output_size(x: Sizes, w: Sizes, stride: Sizes, before: Sizes, dilation: Sizes) -> Sizes:
    spatial = zip(x[2:], w[2:], stride, before, dilation, strict=True)
    return tuple((n + 2 * b - d * (k - 1) - 1) // s + 1 for n, k, s, b, d in spatial)


def windows64(
    x: Array, w: Array, g: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int
) -> tuple[Array, Array, Array]:
    """Compute y, dx and dw, one position within the windows after another."""
    n, out = len(x), g.shape[2:]
    inside = (..., *(slice(b, b + size) for b, size in zip(before, x.shape[2:], strict=True)))
    padded = np.zeros((*x.shape[:2], *(size + 2 * b for b, size in zip(before, x.shape[2:], strict=True))))
    padded[inside] = x
    grouped = padded.reshape(n, groups, -1, *padded.shape[2:])
    weight = w.astype(np.float64).reshape(groups, -1, *w.shape[1:])
    gradient = g.astype(np.float64).reshape(n, groups, -1, *out)
    rows = gradient.shape[:3]
    y, dx, dw = np.zeros(gradient.shape), np.zeros(grouped.shape), np.zeros(weight.shape)
    for place in itertools.product(*map(range, w.shape[2:])):
        at = (
            ...,
            *(
                slice(i * d, i * d + s * (o - 1) + 1, s)
                for i, d, s, o in zip(place, dilation, stride, out, strict=True)
            ),
        )
        window = (..., *place)
        y += np.einsum("goc,ngc...->ngo...", weight[window], grouped[at])
        dx[at] += np.einsum("goc,ngo...->ngc...", weight[window], gradient)
        dw[window] = np.einsum(
            "ngci,ngoi->goc", grouped[at].reshape(n, groups, len(w[0]), -1), gradient.reshape(*rows, -1)
        )
    return y.reshape(g.shape), dx.reshape(padded.shape)[inside], dw.reshape(w.shape)


def compiled(name: str, *args: Any) -> Array:
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def forward_and_gradients(x: Array, w: Array, bias: Array | None, g: Array, settings: tuple[Any, ...]) -> list[Array]:
    return [
        compiled("convolution", x, w, bias, *settings, g.shape[2:]),
        compiled("convolution_dx", g, w, *settings, x.shape[2:]),
        compiled("convolution_dw", x, g, *settings, w.shape),
    ]


def operands(x_shape: Sizes, w_shape: Sizes, stride: Sizes, before: Sizes, dilation: Sizes) -> tuple[Array, ...]:
    """Return x, w, bias, and the gradient of the output."""
    out = output_size(x_shape, w_shape, stride, before, dilation)
    return normal(*x_shape), normal(*w_shape), normal(w_shape[0]), normal(x_shape[0], w_shape[0], *out)


def assert_agree(got: list[Array], expected_values: list[Array]) -> None:
    for mine, value in zip(got, expected_values, strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, value, rtol=RTOL, atol=RTOL * np.abs(value).max())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward_and_both_gradients(case: tuple[Any, ...], poisoned_empty: list[GuardedArray]) -> None:
    *shapes, groups = case
    x, w, bias, g = operands(*shapes)
    settings = (*shapes[2:], groups)
    y, dx, dw = windows64(x, w, g, *settings)
    got = forward_and_gradients(x, w, bias, g, settings)
    assert_agree(got, [y + bias.reshape(-1, *[1] * (y.ndim - 2)), dx, dw])
    assert_agree([compiled("convolution", x, w, None, *settings, g.shape[2:])], [y])
    for guarded_array in poisoned_empty:
        guarded_array.check_outside()
    outputs = [guarded_array for guarded_array in poisoned_empty if any(guarded_array.array is array for array in got)]
    assert len(outputs) == 3
    for guarded_array in outputs:
        guarded_array.check()


def test_any_layout() -> None:
    settings = ((1, 1), (1, 1), (1, 1), 1)
    x, w, bias, g = operands((2, 3, 6, 7), (4, 3, 3, 3), *settings[:3])
    expected_values = forward_and_gradients(x, w, bias, g, settings)
    channels_last = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for a in (x, w, g)]
    assert_agree(
        forward_and_gradients(channels_last[0], channels_last[1], bias[::-1].copy()[::-1], channels_last[2], settings),
        expected_values,
    )


def test_nothing_to_do() -> None:
    settings = ((1, 1), (1, 1), (1, 1), 1)
    x, w, bias = np.zeros((0, 3, 5, 5), np.float32), normal(4, 3, 3, 3), normal(4)
    y, dx, dw = forward_and_gradients(x, w, bias, np.zeros((0, 4, 5, 5), np.float32), settings)
    assert y.shape == (0, 4, 5, 5)
    assert dx.shape == x.shape
    np.testing.assert_array_equal(dw, np.zeros(w.shape))
    no_channels = compiled("convolution", normal(2, 0, 5, 5), normal(4, 0, 3, 3), bias, *settings, (5, 5))
    np.testing.assert_array_equal(no_channels, np.broadcast_to(bias[:, None, None], (2, 4, 5, 5)))


def test_mismatched_shapes_are_refused() -> None:
    x, w, bias, g = normal(2, 4, 6, 6), normal(4, 2, 3, 3), normal(4), normal(2, 4, 6, 6)
    one = (1, 1)
    bad = [
        ("convolution", (x, w, bias, one, one, one, 1, (6, 6))),
        ("convolution", (x, w, normal(3), one, one, one, 2, (6, 6))),
        ("convolution", (x, w, bias, (1,), one, one, 2, (6, 6))),
        ("convolution", (x, w, bias, one, (-1, 1), one, 2, (6, 6))),
        ("convolution", (x, w, bias, (0, 1), one, one, 2, (6, 6))),
        ("convolution_dx", (g[:, :3], w, one, one, one, 2, (6, 6))),
        ("convolution_dw", (x, g[:1], one, one, one, 2, w.shape)),
        ("convolution_dw", (x, g, one, one, one, 2, (4, 1, 3, 3))),
    ]
    for name, args in bad:
        with pytest.raises(ShapeError):
            compiled(name, *args)


@pytest.mark.threads
@pytest.mark.parametrize(
    ("x", "w", "groups"),
    [
        ((5, 3, 9, 9), (4, 3, 3, 3), 1),
        ((7, 6, 3, 4), (8, 3, 3, 3), 2),
        ((3, 20, 30, 30), (4, 20, 3, 3), 1),
    ],
)
def test_threads_change_nothing(x: Sizes, w: Sizes, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    settings = ((1, 1), (1, 1), (1, 1), groups)
    inputs = operands(x, w, *settings[:3])
    alone = forward_and_gradients(*inputs, settings)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    for a, b in zip(forward_and_gradients(*inputs, settings), alone, strict=True):
        np.testing.assert_array_equal(a, b)

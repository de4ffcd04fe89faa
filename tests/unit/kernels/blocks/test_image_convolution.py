"""The kernels "image_convolution" and "image_max_pool", compared with their formulas in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.decode_blocks import BACKENDS
from support.kernel_choice import using

import tallow.ops.convolution  # noqa: F401 - array code of kernels that the array code here calls
from tallow import kernels
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.blocks.image_convolution import ImageConvolution

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)
# channels, size, outputs, kernel, stride, pads (top, left, bottom, right), dilation, groups
SHAPES = [
    (3, (23, 20), 20, (7, 5), (2, 2), (3, 2, 3, 2), (1, 1), 1),
    (8, (13, 13), 33, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    (16, (7, 9), 16, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    (12, (9, 8), 24, (3, 3), (2, 1), (0, 1, 2, 0), (1, 2), 3),
    (37, (11, 12), 37, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 37),
    (70, (12, 11), 70, (5, 5), (2, 2), (2, 2, 2, 2), (1, 1), 70),
    (1024, (3, 5), 40, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),  # rows in one set of L1
    (4, (1, 1), 3, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    (6, (7, 8), 3, (3, 3), (1, 1), (1, 0, 0, 1), (1, 1), 3),  # two channels to each output
    (5, (3, 3), 5, (3, 3), (1, 1), (4, 4, 4, 4), (1, 1), 5),  # windows of zeros alone
]
ACTIONS = {
    "nothing": lambda x: x,
    "clamp": lambda x: np.clip(x, -0.5, 1.5),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def windows(x: Array, kernel: Any, stride: Any, pads: Any, dilation: Any, fill: float) -> Array:
    """Return what each window sees.  Shapes:  (N, C, H, W) -> (N, C, *out, *kernel)"""
    top, left, bottom, right = pads
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    return seen[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def convolution(x: Array, w: Array, kernel: Any, stride: Any, pads: Any, dilation: Any, groups: int) -> Array:
    seen = windows(x, kernel, stride, pads, dilation, 0.0)
    n, c = seen.shape[:2]
    by_group = seen.reshape(n, groups, c // groups, *seen.shape[2:])
    weight = w.astype(np.float64).reshape(groups, -1, *w.shape[1:])
    return np.einsum("ngchwuv,gocuv->ngohw", by_group, weight).reshape(n, len(w), *seen.shape[2:4])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_value(shape: Any, action: str, backend: str) -> None:
    channels, size, outputs, kernel, stride, pads, dilation, groups = shape
    x, w, bias = normal(2, channels, *size), normal(outputs, channels // groups, *kernel), normal(outputs)
    sums = convolution(x, w, kernel, stride, pads, dilation, groups)
    plus = normal(*sums.shape)
    given = (w, bias, stride, pads[:2], pads[2:], dilation, groups, action, -0.5, 1.5)
    near = 1e-5 * np.abs(sums).max()
    with using(backend, "image_convolution"):
        whole = kernels.run("image_convolution", x, ImageConvolution(*given, scale=0.5, shift=2.0), plus)
        plain = kernels.run("image_convolution", adjacent(x), ImageConvolution(w, None, *given[2:]), None)
    expected = ACTIONS[action](sums + bias.reshape(-1, 1, 1) + plus)
    np.testing.assert_allclose(whole, 0.5 * expected + 2, rtol=1e-5, atol=near)
    np.testing.assert_allclose(plain, ACTIONS[action](sums), rtol=1e-5, atol=near)
    assert whole.dtype == plain.dtype == np.float32


def adjacent(x: Array) -> Array:
    """Return an image of the same values whose channels are adjacent in memory."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("channels", [3, 37])
def test_maxima(channels: int, backend: str) -> None:
    x = normal(2, channels, 11, 12)
    settings = (3, 2), (2, 1), (1, 0), (1, 2)
    expected = windows(x, *settings[:2], (1, 0, 1, 0), settings[3], -math.inf).max(axis=(-1, -2))
    with using(backend, "image_max_pool"):
        found = kernels.run("image_max_pool", x, *settings, expected.shape[2:])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("groups", [1, 20])
def test_nan_and_infinity_reach_what_reads_them(groups: int, backend: str) -> None:
    x, w = np.ones((1, 20, 1, 9), np.float32), np.ones((20, 20 // groups, 1, 1), np.float32)
    x[0, 3, 0, 2], x[0, 4, 0, 5] = np.nan, np.inf
    block = ImageConvolution(w, None, (1, 1), (0, 0), (0, 0), (1, 1), groups, "clamp", 0.0, math.inf)
    with using(backend, "image_convolution"):
        y = kernels.run("image_convolution", x, block, None)
    with np.errstate(invalid="ignore"):
        expected = np.maximum(convolution(x, w, (1, 1), (1, 1), (0,) * 4, (1, 1), groups), 0)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_maxima_of_nan_are_nan(backend: str) -> None:
    x = normal(1, 20, 4, 4)
    x[0, :, 1, 1] = np.nan
    with using(backend, "image_max_pool"):
        y = kernels.run("image_max_pool", x, (2, 2), (2, 2), (0, 0), (1, 1), (2, 2))
    assert np.isnan(y[..., 0, 0]).all()
    assert not np.isnan(y[..., 1, 1]).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_shapes_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="do not fit"):
        ImageConvolution(normal(4, 3, 3, 3), normal(3), (1, 1), (0, 0), (0, 0), (1, 1), 1)
    with pytest.raises(ArgumentError, match="action"):
        ImageConvolution(normal(4, 3, 3, 3), None, (1, 1), (0, 0), (0, 0), (1, 1), 1, "gelu")
    block = ImageConvolution(normal(4, 3, 3, 3), None, (1, 1), (0, 0), (0, 0), (1, 1), 1)
    with using(backend, "image_convolution"):
        for x, plus, reason in (
            (normal(1, 4, 5, 5), None, "for 3 channels"),
            (normal(1, 3, 2, 5), None, "smaller than the kernel"),
            (normal(1, 3, 5, 5), normal(1, 4, 5, 5), "is added to one"),
        ):
            with pytest.raises(ShapeError, match=reason):
                kernels.run("image_convolution", x, block, plus)

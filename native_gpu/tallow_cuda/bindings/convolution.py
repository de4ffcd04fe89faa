"""convolution, convolution_dx, convolution_dw, as matrix products of windows; see src/columns.cu.

Letters: N batch, C channels in, O channels out, G groups, K = C / G · kernel, P positions of the output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.kernels import kernel
from tallow_cuda.bindings.matmul import matmul
from tallow_cuda.launching import FLOAT32, contiguous, is_float, launch
from tallow_cuda.sources import element, load

Sizes = tuple[int, ...]
THREADS = 256
MOST_ROWS = 65535  # maximum blocks of a grid in its second dim
COLUMNS = 2**27  # elements of a matrix of windows: a few hundred MiB
DEFINES = ("KD", "KH", "KW", "SD", "SH", "SW", "DD", "DH", "DW")  # macros of columns.cu, compiled per layer


class _Windows:
    """The windows of images as the columns of a matrix.

    Shapes:  images (N, C, *spatial), weight (O, C / G, *kernel), output (N, O, *out)
    """

    def __init__(
        self, spatial: Sizes, w: Sizes, out: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, groups: int
    ) -> None:
        self.groups, self.channels = groups, w[1] * groups
        self.spatial, self.kernel, self.out = spatial, w[2:], out
        self.rows, self.places = self.channels * math.prod(w[2:]), math.prod(out)
        self.are_pixels = self.kernel == (1,) * len(out) and stride == self.kernel and not any(before)
        ones, zeros = (1,) * (3 - len(out)), (0,) * (3 - len(out))
        fixed = [*ones, *w[2:], *ones, *stride, *ones, *dilation]
        self.defines = dict(zip(DEFINES, fixed, strict=True))
        numbers = [self.channels, *ones, *spatial, *ones, *out, *zeros, *before]
        self.numbers = [np.int32(n) for n in numbers]

    def parts(self, batch: int) -> Iterator[slice]:
        """Yield the samples whose columns are computed at once."""
        at_once = max(1, COLUMNS // max(1, self.rows * self.places))
        return (slice(start, min(start + at_once, batch)) for start in range(0, batch, at_once))

    def per_sample(self, x: Array) -> Array:
        """Return the columns of each sample, (n, C, *spatial) -> (n, G, K, P)."""
        n = len(x)
        if not self.are_pixels:
            x, columns = contiguous(x), array_module(x).empty((n, self.rows, self.places), x.dtype)
            self._fill(x, columns, self.places, self.rows * self.places)
            x = columns
        return x.reshape(n, self.groups, self.rows // self.groups, self.places)

    def all_samples(self, x: Array) -> Array:
        """Return the columns of all samples together, (n, C, *spatial) -> (G, K, n · P)."""
        columns = array_module(x).empty((self.rows, len(x) * self.places), x.dtype)
        self._fill(contiguous(x), columns, len(x) * self.places, self.places)
        return columns.reshape(self.groups, self.rows // self.groups, -1)

    def _fill(self, x: Array, columns: Array, row: int, sample: int) -> None:
        blocks = -(-len(x) * self.places // THREADS), min(self.rows, MOST_ROWS)
        self._launch("columns_of_images", blocks, x, columns, row, sample)

    def _launch(self, name: str, blocks: Sizes, x: Array, y: Array, row: int, sample: int) -> None:
        kernel = load("columns.cu", name, X=element(x), Y=element(y), **self.defines)
        launch(kernel, blocks, (THREADS,), x, y, np.int32(len(x)), *self.numbers, row, sample)

    def sum_windows(self, columns: Array) -> Array:
        """Sum columns over overlapping windows, (n, G, K, P) -> (n, C, *spatial)."""
        n = len(columns)
        if self.are_pixels:
            return columns.reshape(n, self.channels, *self.spatial)
        images = array_module(columns).empty((n, self.channels, *self.spatial), columns.dtype)
        blocks = (-(-images.size // THREADS),)
        self._launch("images_of_columns", blocks, columns, images, self.places, self.rows * self.places)
        return images


def dense_images(x: Array, w: Array, bias: Array | None, *rest: object) -> bool:
    """x (N, C, *spatial) and w of one dtype, and a bias: float32, float16 or bfloat16; not depthwise, not empty."""
    groups = rest[3]
    return is_float(x, w, bias) and x.dtype == w.dtype and _is_dense(x, w.shape, groups)


def _is_dense(images: Array, w: Sizes, groups: object) -> bool:
    return images.size > 0 and min(w) > 0 and len(w) <= 5 and (groups == 1 or w[1] > 1)


@kernel("convolution", "cuda", accepts=dense_images)
def convolution(
    x: Array, w: Array, bias: Array | None, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, out: Sizes
) -> Array:
    """Convolve, in the dtype of x.

    Shapes:  x (N, C, *spatial), w (O, C / G, *kernel), bias (O) -> (N, O, *out)
    """
    windows = _Windows(x.shape[2:], w.shape, out, stride, before, dilation, groups)
    y = array_module(x).empty((len(x), len(w), *out), x.dtype)
    matrix = contiguous(w).reshape(groups, len(w) // groups, -1)
    for part in windows.parts(len(x)):
        y[part] = matmul(matrix, windows.per_sample(x[part])).reshape(-1, len(w), *out)
    if bias is not None:
        add_to_channels(y, bias)
    return y


def add_to_channels(y: Array, bias: Array) -> None:
    """Add bias (O) to y (N, O, *out), in place."""
    kernel = load("add_bias.cu", "add_bias_to_channels", X=element(y), B=element(bias))
    blocks = y.shape[0] * y.shape[1]
    launch(kernel, (blocks,), (THREADS,), y, contiguous(bias), y.shape[1], y.size // blocks)


def gradient_and_weight(g: Array, w: Array, *rest: object) -> bool:
    """g (N, O, *out) in float32 or the dtype of w: float32, float16 or bfloat16; not depthwise, not empty."""
    groups = rest[3]
    return is_float(g, w) and g.dtype in (w.dtype, FLOAT32) and _is_dense(g, w.shape, groups)


@kernel("convolution_dx", "cuda", accepts=gradient_and_weight)
def convolution_dx(
    g: Array, w: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, spatial: Sizes
) -> Array:
    """Return the gradient of x, in the dtype of g.

    Shapes:  g (N, O, *out), w (O, C / G, *kernel) -> (N, C, *spatial)
    """
    windows = _Windows(spatial, w.shape, g.shape[2:], stride, before, dilation, groups)
    d = array_module(g).empty((len(g), windows.channels, *spatial), g.dtype)
    matrix = contiguous(w).reshape(groups, len(w) // groups, -1).swapaxes(1, 2)
    g = contiguous(g).reshape(len(g), groups, len(w) // groups, windows.places)
    for part in windows.parts(len(g)):
        d[part] = windows.sum_windows(matmul(matrix, g[part]))
    return d


def images_and_gradient(x: Array, g: Array, *rest: object) -> bool:
    """x and a gradient in float32 or x's dtype: float32, float16 or bfloat16; not depthwise, not empty."""
    groups, shape = rest[3], rest[4]
    return is_float(x, g) and g.dtype in (x.dtype, FLOAT32) and g.size > 0 and _is_dense(x, shape, groups)  # type: ignore[arg-type]


@kernel("convolution_dw", "cuda", accepts=images_and_gradient)
def convolution_dw(
    x: Array, g: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, shape: Sizes
) -> Array:
    """Return the gradient of w, in float32.

    Shapes:  x (N, C, *spatial), g (N, O, *out) -> `shape`, (O, C / G, *kernel)
    """
    windows = _Windows(x.shape[2:], shape, g.shape[2:], stride, before, dilation, groups)
    xp = array_module(x)
    d = xp.zeros((groups, shape[0] // groups, math.prod(shape[1:])), np.float32)
    for part in windows.parts(len(x)):
        by_channel = xp.ascontiguousarray(g[part].swapaxes(0, 1)).reshape(groups, shape[0] // groups, -1)
        d += widen(matmul(by_channel, windows.all_samples(x[part]).swapaxes(1, 2)))
    return d.reshape(shape)

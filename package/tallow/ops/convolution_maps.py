"""The bilinear map of convolutions, y = Σ w ⊙ windows(x), and its two adjoints, on arrays.

Windows are gathered into the columns of a matrix, one tile of the output at a time so that the matrix stays small, and
multiplied by the weight. In a depthwise convolution, where each channel has its own weight, there is no matrix but one
product for each kernel position.

Letters: N batch, C channels in, O channels out; `kernel`, `out`, ... sizes of the spatial dims.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tallow.devices import array_module
from tallow.kernels import run
from tallow.ops.table import Array
from tallow.ops.windows import (
    Sizes,
    add_windows,
    inner,
    offsets,
    pad_zeros,
    spans,
    windows,
)

TILE = 2**22  # elements of a matrix of columns: 16 MiB in float32


class WindowMap(NamedTuple):
    """y = Σ w ⊙ windows(x) without zero padding: x is already padded, by `pad`.

    Shapes:  x (N, C, *spatial), w (O, C / groups, *kernel), y (N, O, *out)
    """

    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    groups: int
    out: Sizes

    def padded(self, spatial: Sizes, before: Sizes) -> Sizes:
        """Return the spatial dims with `before` zeros in front, and as many behind as the last window reaches."""
        reach = spans(self.kernel, self.dilation)
        return tuple(
            max(n + b, (o - 1) * s + r)
            for n, b, o, s, r in zip(spatial, before, self.out, self.stride, reach, strict=True)
        )

    def pad(self, x: Array, before: Sizes) -> Array:
        """Return x with the zeros that `padded` counts."""
        padded_shape = self.padded(x.shape[2:], before)
        return pad_zeros(x, before, tuple(w - n - b for w, n, b in zip(padded_shape, x.shape[2:], before, strict=True)))

    def is_depthwise(self, w: Array) -> bool:
        """Return whether each channel has its own weight."""
        return self.groups > 1 and w.shape[1] == 1

    def tiles(self, batch: int, channels: int) -> Iterator[tuple[slice, slice]]:
        """Yield the samples and rows of the first spatial dim of y whose columns fit into a tile; all if they fit."""
        row = channels * math.prod(self.kernel) * math.prod(self.out[1:])
        rows = max(1, min(self.out[0], TILE // max(1, row)))
        samples = max(1, TILE // max(1, row * rows)) if rows == self.out[0] else 1
        for n in range(0, batch, samples):
            for r in range(0, self.out[0], rows):
                yield slice(n, min(n + samples, batch)), slice(r, min(r + rows, self.out[0]))

    def columns(self, x: Array, samples: slice, rows: slice) -> Array:
        """Return the columns of a tile, (groups, C / groups · kernel, n · out)."""
        view = windows(x, self.kernel, self.stride, self.dilation, self.out)[samples]
        view = view[(..., rows, *[slice(None)] * (len(self.out) - 1))]
        channels = view.shape[1]
        dims = len(self.kernel)
        view = view.transpose(*range(1, 2 + dims), 0, *range(2 + dims, 2 + 2 * dims))
        rows_of_matrix = channels // self.groups * math.prod(self.kernel)
        return view.reshape(self.groups, rows_of_matrix, math.prod(view.shape[1 + dims :]))

    def matrix(self, w: Array) -> Array:
        """Reshape a weight to (groups, O / groups, C / groups · kernel)."""
        return w.reshape(self.groups, w.shape[0] // self.groups, math.prod(w.shape[1:]))

    def value(self, x: Array, w: Array) -> Array:
        """Return y of a padded x."""
        if self.is_depthwise(w):
            return self._depthwise_value(x, w)
        y = array_module(x).empty((len(x), len(w), *self.out), x.dtype)
        for samples, rows in self.tiles(len(x), x.shape[1]):
            part = y[samples, :, rows]
            tile = run("matmul", self.matrix(w), self.columns(x, samples, rows))
            part[...] = tile.reshape(len(w), len(part), *part.shape[2:]).swapaxes(0, 1)
        return y

    def d_x(self, g: Array, w: Array, spatial: Sizes) -> Array:
        """Apply the adjoint in x, whose spatial dims are given."""
        if self.is_depthwise(w):
            return self._depthwise_d_x(g, w, spatial)
        channels = w.shape[1] * self.groups
        d = array_module(g).zeros((len(g), channels, *spatial), g.dtype)
        transposed = self.matrix(w).swapaxes(1, 2)
        dims = len(self.kernel)
        for samples, rows in self.tiles(len(g), channels):
            tile = g[samples, :, rows]
            columns = run("matmul", transposed, self._as_columns(tile))
            patches = columns.reshape(channels, *self.kernel, len(tile), *tile.shape[2:])
            patches = patches.transpose(1 + dims, *range(1 + dims), *range(2 + dims, 2 + 2 * dims))
            add_windows(d[samples, :, rows.start * self.stride[0] :], patches, self.stride, self.dilation)
        return d

    def d_w(self, x: Array, g: Array, shape: Sizes) -> Array:
        """Apply the adjoint in w, whose shape is given."""
        if self.groups > 1 and shape[1] == 1:
            return self._depthwise_d_w(x, g, shape)
        d = array_module(g).zeros((self.groups, shape[0] // self.groups, math.prod(shape[1:])), g.dtype)
        for samples, rows in self.tiles(len(x), x.shape[1]):
            columns = self.columns(x, samples, rows)
            d += run("matmul", self._as_columns(g[samples, :, rows]), columns.swapaxes(1, 2))
        return d.reshape(shape)

    def _as_columns(self, g: Array) -> Array:
        """Reshape (n, O, *out) to (groups, O / groups, n · out)."""
        columns = len(g) * math.prod(g.shape[2:])
        return g.swapaxes(0, 1).reshape(self.groups, g.shape[1] // self.groups, columns)

    def _places(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        return offsets(self.kernel, self.stride, self.dilation, self.out)

    def _depthwise_value(self, x: Array, w: Array) -> Array:
        xp = array_module(x)
        y = xp.zeros((len(x), self.groups, len(w) // self.groups, *self.out), x.dtype)
        part = xp.empty_like(y)
        for place, slices in self._places():
            xp.multiply(x[(..., *slices)][:, :, None], self._at(w, place), out=part)
            y += part
        return y.reshape(len(x), len(w), *self.out)

    def _depthwise_d_x(self, g: Array, w: Array, spatial: Sizes) -> Array:
        g = self._by_channel(g)
        d = array_module(g).zeros((len(g), self.groups, *spatial), g.dtype)
        for place, slices in self._places():
            d[(..., *slices)] += (g * self._at(w, place)).sum(axis=2)
        return d

    def _depthwise_d_w(self, x: Array, g: Array, shape: Sizes) -> Array:
        xp = array_module(g)
        g = self._by_channel(g)
        d = xp.empty((self.groups, g.shape[2], *self.kernel), g.dtype)
        spatial = "xyz"[: len(self.out)]
        for place, slices in self._places():
            part = x[(..., *slices)]
            if xp is np:
                d[(..., *place)] = np.einsum(f"nc{spatial},ncm{spatial}->cm", part, g)
            else:  # CuPy's einsum uses cuBLAS, which a CUDA graph cannot capture
                d[(..., *place)] = (part[:, :, None] * g).sum(axis=(0, *range(3, g.ndim)))
        return d.reshape(shape)

    def _by_channel(self, g: Array) -> Array:
        """Reshape (N, O, *out) to (N, C, O / C, *out)."""
        return g.reshape(len(g), self.groups, g.shape[1] // self.groups, *self.out)

    def _at(self, w: Array, place: tuple[int, ...]) -> Array:
        """Return a depthwise weight at one kernel position, (C, O / C, 1, ...)."""
        return w[(slice(None), 0, *place)].reshape(self.groups, -1, *[1] * len(self.out))


def is_of_images(weight: Sizes, groups: int) -> bool:
    """Return whether `VolumeMap` computes a convolution: over three dims, and not depthwise."""
    return len(weight) == 5 and (groups == 1 or weight[1] > 1)


class VolumeMap:
    """A convolution over three dims as one over the last two: the windows along the first dim are channels of images.

    For K windows of a plane, the images have K times the elements of x, where the columns of a matrix have those of all
    three dims of the kernel.
    """

    def __init__(
        self, weight: Sizes, spatial: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, out: Sizes
    ) -> None:
        self.planes = WindowMap((weight[2], 1, 1), (stride[0], 1, 1), (dilation[0], 1, 1), 1, (out[0], *spatial[1:]))
        self.before, self.spatial, self.out = (before[0], 0, 0), spatial, out
        self.settings = (stride[1:], before[1:], dilation[1:], groups)
        self.weight, self.weight_of_images = weight, (weight[0], weight[1] * weight[2], *weight[3:])
        self.channels = weight[1] * groups

    def value(self, x: Array, w: Array) -> Array:
        """Return y of an x without padding."""
        y = array_module(x).empty((len(x), len(w), *self.out), x.dtype)
        x, w = self.planes.pad(x, self.before), w.reshape(self.weight_of_images)
        for samples, rows in self.planes.tiles(len(x), self.channels):
            part = y[samples, :, rows].swapaxes(1, 2)
            images = run("convolution", self._images(x, samples, rows), w, None, *self.settings, self.out[1:])
            part[...] = images.reshape(part.shape)
        return y

    def d_x(self, g: Array, w: Array) -> Array:
        """Apply the adjoint in x."""
        padded = self.planes.padded(self.spatial, self.before)
        d = array_module(g).zeros((len(g), self.channels, *padded), g.dtype)
        w = w.reshape(self.weight_of_images)
        for samples, rows in self.planes.tiles(len(g), self.channels):
            tile = g[samples, :, rows]
            images = run("convolution_dx", _as_images(tile), w, *self.settings, self.spatial[1:])
            patches = images.reshape(len(tile), tile.shape[2], self.channels, -1, 1, 1, *self.spatial[1:])
            target = d[samples, :, rows.start * self.planes.stride[0] :]
            add_windows(target, patches.transpose(0, 2, 3, 4, 5, 1, 6, 7), self.planes.stride, self.planes.dilation)
        return array_module(d).ascontiguousarray(d[inner(self.before, self.spatial)])

    def d_w(self, x: Array, g: Array) -> Array:
        """Apply the adjoint in w."""
        d = array_module(g).zeros(self.weight_of_images, g.dtype)
        x = self.planes.pad(x, self.before)
        for samples, rows in self.planes.tiles(len(x), self.channels):
            of_images = _as_images(g[samples, :, rows])
            d += run("convolution_dw", self._images(x, samples, rows), of_images, *self.settings, d.shape)
        return d.reshape(self.weight)

    def _images(self, x: Array, samples: slice, rows: slice) -> Array:
        """Return the images of a tile, (n · rows, C · kernel, H, W)."""
        view = windows(x, self.planes.kernel, self.planes.stride, self.planes.dilation, self.planes.out)
        view = view[samples, ..., rows, :, :].transpose(0, 5, 1, 2, 3, 4, 6, 7)
        return view.reshape(view.shape[0] * view.shape[1], -1, *view.shape[6:])


def _as_images(g: Array) -> Array:
    """Reshape (n, O, D, H, W) to (n · D, O, H, W)."""
    return g.swapaxes(1, 2).reshape(g.shape[0] * g.shape[2], g.shape[1], *g.shape[3:])

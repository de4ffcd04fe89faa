"""Convolutions (cross-correlations, as in all deep learning libraries) over any number of dims.

All are built from one bilinear map, y = Σ w ⊙ windows(x), and its two adjoints. A transposed convolution uses the
adjoint in x as its forward pass. Windows are gathered into the columns of a matrix, one tile of the output at a time
so that the matrix stays small, and multiplied by the weight. In a depthwise convolution, where each channel has its own
weight, there is no matrix but one product for each kernel position.

Letters: N batch, C channels in, O channels out; `kernel`, `out`, ... sizes of the spatial dims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import PLANS
from tallow.ops.checks import refuse_bool
from tallow.ops.table import Array, Result, op
from tallow.ops.windows import (
    IntOrInts,
    Sizes,
    add_windows,
    expect_spatial,
    inner,
    offsets,
    pad_zeros,
    sizes,
    spans,
    windows,
)

TILE = 2**22  # elements of a matrix of columns: 16 MiB in float32


class _Map(NamedTuple):
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
        padded_shape = self.padded(x.shape[2:], before)
        return pad_zeros(x, before, tuple(w - n - b for w, n, b in zip(padded_shape, x.shape[2:], before, strict=True)))

    def is_depthwise(self, w: Array) -> bool:
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


def _is_of_images(weight: Sizes, groups: int) -> bool:
    """Return whether `_Volumes` computes a convolution: over three dims, and not depthwise."""
    return len(weight) == 5 and (groups == 1 or weight[1] > 1)


class _Volumes:
    """A convolution over three dims as one over the last two: the windows along the first dim are channels of images.

    For K windows of a plane, the images have K times the elements of x, where the columns of a matrix have those of all
    three dims of the kernel.
    """

    def __init__(
        self, weight: Sizes, spatial: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, out: Sizes
    ) -> None:
        self.planes = _Map((weight[2], 1, 1), (stride[0], 1, 1), (dilation[0], 1, 1), 1, (out[0], *spatial[1:]))
        self.before, self.spatial, self.out = (before[0], 0, 0), spatial, out
        self.settings = (stride[1:], before[1:], dilation[1:], groups)
        self.weight, self.weight_of_images = weight, (weight[0], weight[1] * weight[2], *weight[3:])
        self.channels = weight[1] * groups

    def value(self, x: Array, w: Array) -> Array:
        y = array_module(x).empty((len(x), len(w), *self.out), x.dtype)
        x, w = self.planes.pad(x, self.before), w.reshape(self.weight_of_images)
        for samples, rows in self.planes.tiles(len(x), self.channels):
            part = y[samples, :, rows].swapaxes(1, 2)
            images = run("convolution", self._images(x, samples, rows), w, None, *self.settings, self.out[1:])
            part[...] = images.reshape(part.shape)
        return y

    def d_x(self, g: Array, w: Array) -> Array:
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


def _convolution(
    name: str,
    dims: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: IntOrInts,
    padding: IntOrInts | str,
    dilation: IntOrInts,
    groups: int,
) -> Result:
    stride = sizes(name, "stride", stride, dims, 1)
    dilation = sizes(name, "dilation", dilation, dims, 1)
    if not isinstance(padding, str):
        padding = sizes(name, "padding", padding, dims, 0)
    shapes = input.shape, weight.shape, None if bias is None else bias.shape
    is_batch, before, out = _plan(name, *shapes, stride, padding, dilation, groups)
    if input.dtype.kind == "b":
        refuse_bool(name, input)
    x = input if is_batch else input[None]
    settings = (stride, before, dilation, groups)
    return _result(
        run("convolution", x, weight, bias, *settings, out),
        bias is not None,
        is_batch,
        d_input=lambda g: run("convolution_dx", g, weight, *settings, x.shape[2:]),
        d_weight=lambda g: run("convolution_dw", x, g, *settings, weight.shape),
    )


@lru_cache(PLANS, typed=True)
def _plan(
    name: str, input: Sizes, weight: Sizes, bias: Sizes | None, stride: Sizes, padding: Sizes | str, dilation: Sizes,
    groups: int,
) -> tuple[bool, Sizes, Sizes]:  # fmt: skip
    """Return whether there is a batch dim, the number of zeros before each spatial dim, and the output's spatial dims.

    Raises: ShapeError if the shapes do not fit each other.
    """
    dims = len(stride)
    is_batch = _check_shapes(name, dims, input, weight, bias, groups)
    reach = spans(weight[2:], dilation)
    before, after = _padding(name, padding, dims, stride, reach)
    channels = input[-dims - 1]
    if channels != weight[1] * groups:
        raise ShapeError(
            f"{name}: given groups={groups} and weight {weight}, expected input {input} "
            f"to have {weight[1] * groups} channels, but got {channels}"
        )
    if weight[0] % groups:
        raise ShapeError(f"{name}: expected groups to divide {weight[0]} output channels, got {groups}")
    spatial = tuple(n + a + b for n, a, b in zip(input[-dims:], before, after, strict=True))
    if any(n < r for n, r in zip(spatial, reach, strict=True)):
        raise ShapeError(
            f"{name}: kernel size can't be greater than actual input size: the dilated kernel covers {reach}, "
            f"the padded input is {spatial}"
        )
    return is_batch, before, tuple((n - r) // s + 1 for n, r, s in zip(spatial, reach, stride, strict=True))


def _result(
    y: Array, has_bias: bool, is_batch: bool, d_input: Callable[[Array], Array], d_weight: Callable[[Array], Array]
) -> Result:
    """Return y and its backward, without the batch dim if the input was a single sample."""

    def backward(g: Array) -> tuple[object, ...]:
        if not is_batch:
            g = g[None]
        return (
            lambda: d_input(g) if is_batch else d_input(g)[0],
            lambda: d_weight(g),
            (lambda: run("row_sums", g.reshape(*g.shape[:2], math.prod(g.shape[2:]))).sum(axis=0))
            if has_bias
            else None,
        )

    return y if is_batch else y[0], backward


@kernel("convolution", "array", round_like=0)
def convolution_array(
    x: Array, w: Array, bias: Array | None, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, out: Sizes
) -> Array:
    """Convolve padded windows of x with w and add the bias.

    Shapes:  x (N, C, *spatial), w (O, C / groups, *kernel), bias (O) -> (N, O, *out)
    """
    if _is_of_images(w.shape, groups):
        volumes = _Volumes(w.shape, x.shape[2:], stride, before, dilation, groups, out)
        return _add_bias(volumes.value(x, w), bias)
    bilinear = _Map(w.shape[2:], stride, dilation, groups, out)
    return _add_bias(bilinear.value(bilinear.pad(x, before), w), bias)


@kernel("convolution_dx", "array", round_like=0)
def convolution_dx_array(
    g: Array, w: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, spatial: Sizes
) -> Array:
    """Apply the adjoint in x.  Shapes:  g (N, O, *out), w (O, C / groups, *kernel) -> (N, C, *spatial)"""
    if _is_of_images(w.shape, groups):
        return _Volumes(w.shape, spatial, stride, before, dilation, groups, g.shape[2:]).d_x(g, w)
    bilinear = _Map(w.shape[2:], stride, dilation, groups, g.shape[2:])
    d = bilinear.d_x(g, w, bilinear.padded(spatial, before))[inner(before, spatial)]
    return array_module(d).ascontiguousarray(d)


@kernel("convolution_dw", "array", round_like=1)
def convolution_dw_array(
    x: Array, g: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, shape: Sizes
) -> Array:
    """Apply the adjoint in w.  Shapes:  x (N, C, *spatial), g (N, O, *out) -> `shape`, (O, C / groups, *kernel)"""
    if _is_of_images(shape, groups):
        return _Volumes(shape, x.shape[2:], stride, before, dilation, groups, g.shape[2:]).d_w(x, g)
    bilinear = _Map(shape[2:], stride, dilation, groups, g.shape[2:])
    return bilinear.d_w(bilinear.pad(x, before), g, shape)


def _add_bias(y: Array, bias: Array | None) -> Array:
    """Add the bias to y in place."""
    if bias is not None:
        y += bias.reshape(-1, *[1] * (y.ndim - 2))
    return y


@lru_cache(PLANS, typed=True)
def _check_shapes(name: str, dims: int, input: Sizes, weight: Sizes, bias: Sizes | None, groups: int) -> bool:
    """Return whether the input has a batch dim. Raises ShapeError if the operands do not fit each other."""
    expect_spatial(name, input, dims)
    if 0 in input[-dims:]:
        raise ShapeError(f"{name}: the spatial dims must not be empty, got input {input}")
    if len(weight) != dims + 2:
        raise ShapeError(f"{name}: expected {dims + 2}D weight, got {weight}")
    if 0 in weight[2:]:
        raise ShapeError(f"{name}: the kernel must not be empty, got weight {weight}")
    if groups < 1:
        raise ArgumentError(f"{name}: groups must be positive, got {groups}")
    outputs = weight[1] * groups if "transpose" in name else weight[0]
    if bias is not None and bias != (outputs,):
        raise ShapeError(f"{name}: bias must have shape ({outputs},), got {bias}")
    return len(input) == dims + 2


def _padding(name: str, padding: Sizes | str, dims: int, stride: Sizes, reach: Sizes) -> tuple[Sizes, Sizes]:
    """Return the number of zeros before and after each spatial dim."""
    if padding == "valid":
        return (0,) * dims, (0,) * dims
    if padding == "same":
        if max(stride) > 1:
            raise ShapeError(f"{name}: padding='same' is not supported for strided convolutions, got stride {stride}")
        return tuple((r - 1) // 2 for r in reach), tuple(r // 2 for r in reach)  # odd: one more after
    if isinstance(padding, str):
        raise ShapeError(f"{name}: invalid padding string {padding!r}; expected 'valid' or 'same'")
    return padding, padding


def _transposed(
    name: str,
    dims: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: IntOrInts,
    padding: IntOrInts,
    output_padding: IntOrInts,
    groups: int,
    dilation: IntOrInts,
) -> Result:
    is_batch = _check_shapes(name, dims, input.shape, weight.shape, None if bias is None else bias.shape, groups)
    refuse_bool(name, input)
    stride = sizes(name, "stride", stride, dims, 1)
    dilation = sizes(name, "dilation", dilation, dims, 1)
    padding = sizes(name, "padding", padding, dims, 0)
    extra = sizes(name, "output_padding", output_padding, dims, 0)
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise ShapeError(f"{name}: output_padding {extra} must be smaller than stride {stride} or dilation {dilation}")
    if input.shape[1 if is_batch else 0] != weight.shape[0] or weight.shape[0] % groups:
        raise ShapeError(
            f"{name}: given groups={groups} and weight {tuple(weight.shape)}, expected input {tuple(input.shape)} to "
            f"have {weight.shape[0]} channels, a multiple of groups"
        )
    reach = spans(weight.shape[2:], dilation)
    spatial = input.shape[-dims:]
    full_shape = tuple((n - 1) * s + r + e for n, s, r, e in zip(spatial, stride, reach, extra, strict=True))
    out = tuple(n - 2 * p for n, p in zip(full_shape, padding, strict=True))
    if min(out) < 1:
        raise ShapeError(f"{name}: calculated output size {out} is too small, for input {tuple(input.shape)}")
    x = input if is_batch else input[None]
    settings = (stride, padding, dilation, groups)  # of the map whose adjoint this is
    return _result(
        _add_bias(run("convolution_dx", x, weight, *settings, out), bias),
        bias is not None,
        is_batch,
        d_input=lambda g: run("convolution", g, weight, None, *settings, spatial),
        d_weight=lambda g: run("convolution_dw", g, x, *settings, weight.shape),
    )


@op("tl F", halves=True)
def conv1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Result:
    """Convolve `input` with `weight` over one spatial dim.

    y[n, o, i] = bias[o] + Σ weight[o, c, k] input[n, c, i · stride + k · dilation - padding], over c and k.

    Here i and k stand for one index per spatial dim; stride, padding and dilation are one number, or one per spatial
    dim.

    Args:    padding: zeros at both ends, "same" (output as large as input) or "valid" (none)
    Shapes:  input (N, C, L) or (C, L), weight (O, C / groups, K), bias (O) -> (N, O, *out) or
             (O, *out), out = (spatial + 2 · padding - dilation · (kernel - 1) - 1) // stride + 1
    Raises:  ShapeError for channels that do not fit, or a kernel larger than the padded input
    """
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@op("tl F", halves=True)
def conv2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Result:
    """Convolve `input` with `weight` over two spatial dims.

    y[n, o, i] = bias[o] + Σ weight[o, c, k] input[n, c, i · stride + k · dilation - padding], over c and k.

    Here i and k stand for one index per spatial dim; stride, padding and dilation are one number, or one per spatial
    dim.

    Args:    padding: zeros at both ends, "same" (output as large as input) or "valid" (none)
    Shapes:  input (N, C, H, W) or (C, H, W), weight (O, C / groups, KH, KW), bias (O) -> (N, O, *out) or
             (O, *out), out = (spatial + 2 · padding - dilation · (kernel - 1) - 1) // stride + 1
    Raises:  ShapeError for channels that do not fit, or a kernel larger than the padded input
    """
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@op("tl F", halves=True)
def conv3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Result:
    """Convolve `input` with `weight` over three spatial dims.

    y[n, o, i] = bias[o] + Σ weight[o, c, k] input[n, c, i · stride + k · dilation - padding], over c and k.

    Here i and k stand for one index per spatial dim; stride, padding and dilation are one number, or one per spatial
    dim.

    Args:    padding: zeros at both ends, "same" (output as large as input) or "valid" (none)
    Shapes:  input (N, C, D, H, W) or (C, D, H, W), weight (O, C / groups, KD, KH, KW), bias (O) -> (N, O, *out) or
             (O, *out), out = (spatial + 2 · padding - dilation · (kernel - 1) - 1) // stride + 1
    Raises:  ShapeError for channels that do not fit, or a kernel larger than the padded input
    """
    return _convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@op("tl F")
def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Result:
    """Apply a transposed convolution, the gradient of a convolution with respect to its input.

    Args:    padding: elements removed at both ends; output_padding: elements added at the end
    Shapes:  input (N, C, L) or (C, L), weight (C, O / groups, K), bias (O) -> (N, O, *out) or
             (O, *out), out = (spatial - 1) · stride - 2 · padding + dilation · (kernel - 1) + output_padding + 1
    """
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@op("tl F")
def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Result:
    """Apply a transposed convolution, the gradient of a convolution with respect to its input.

    Args:    padding: elements removed at both ends; output_padding: elements added at the end
    Shapes:  input (N, C, H, W) or (C, H, W), weight (C, O / groups, KH, KW), bias (O) -> (N, O, *out) or
             (O, *out), out = (spatial - 1) · stride - 2 · padding + dilation · (kernel - 1) + output_padding + 1
    """
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@op("tl F")
def conv_transpose3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Result:
    """Apply a transposed convolution, the gradient of a convolution with respect to its input.

    Args:    padding: elements removed at both ends; output_padding: elements added at the end
    Shapes:  input (N, C, D, H, W) or (C, D, H, W), weight (C, O / groups, KD, KH, KW), bias (O) -> (N, O, *out) or
             (O, *out), out = (spatial - 1) · stride - 2 · padding + dilation · (kernel - 1) + output_padding + 1
    """
    return _transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)

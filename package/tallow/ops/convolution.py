"""Convolutions (cross-correlations, as in all deep learning libraries) over any number of dims.

All are built from one bilinear map, y = Σ w ⊙ windows(x), and its two adjoints (`convolution_maps`). A transposed
convolution uses the adjoint in x as its forward pass.

Letters: N batch, C channels in, O channels out; `kernel`, `out`, ... sizes of the spatial dims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import PLANS
from tallow.ops.checks import refuse_bool
from tallow.ops.convolution_maps import VolumeMap, WindowMap, is_of_images
from tallow.ops.maps import product_map
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op
from tallow.ops.windows import (
    IntOrInts,
    Sizes,
    expect_spatial,
    inner,
    sizes,
    spans,
)

Settings = tuple[Sizes, Sizes, Sizes, int]  # stride, zeros before, dilation, groups


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
    if is_of_images(w.shape, groups):
        volumes = VolumeMap(w.shape, x.shape[2:], stride, before, dilation, groups, out)
        return _add_bias(volumes.value(x, w), bias)
    bilinear = WindowMap(w.shape[2:], stride, dilation, groups, out)
    return _add_bias(bilinear.value(bilinear.pad(x, before), w), bias)


@kernel("convolution_dx", "array", round_like=0)
def convolution_dx_array(
    g: Array, w: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, spatial: Sizes
) -> Array:
    """Apply the adjoint in x.  Shapes:  g (N, O, *out), w (O, C / groups, *kernel) -> (N, C, *spatial)"""
    if is_of_images(w.shape, groups):
        return VolumeMap(w.shape, spatial, stride, before, dilation, groups, g.shape[2:]).d_x(g, w)
    bilinear = WindowMap(w.shape[2:], stride, dilation, groups, g.shape[2:])
    d = bilinear.d_x(g, w, bilinear.padded(spatial, before))[inner(before, spatial)]
    return array_module(d).ascontiguousarray(d)


@kernel("convolution_dw", "array", round_like=1)
def convolution_dw_array(
    x: Array, g: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, shape: Sizes
) -> Array:
    """Apply the adjoint in w.  Shapes:  x (N, C, *spatial), g (N, O, *out) -> `shape`, (O, C / groups, *kernel)"""
    if is_of_images(shape, groups):
        return VolumeMap(shape, x.shape[2:], stride, before, dilation, groups, g.shape[2:]).d_w(x, g)
    bilinear = WindowMap(shape[2:], stride, dilation, groups, g.shape[2:])
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


def _gradients(
    g: Derived, *, x: Derived, weight: Derived, settings: Settings, is_batch: bool, has_bias: bool
) -> Gradients:
    """Return the gradients of a convolution as tensors."""
    g, x = (g, x) if is_batch else (g.unsqueeze(0), x)
    maps = _form(settings, weight.shape, x.shape[2:], g.shape[2:])
    of_x = product_map.call(weight, g, maps, 0)
    of_bias = g.sum((0, *range(2, g.ndim))) if has_bias else None
    return [of_x if is_batch else of_x.squeeze(0), product_map.call(x, g, maps, 1), of_bias]


def _gradients_of_transposed(
    g: Derived, *, x: Derived, weight: Derived, settings: Settings, is_batch: bool, has_bias: bool
) -> Gradients:
    """Return the gradients of a transposed convolution as tensors."""
    g, x = (g, x) if is_batch else (g.unsqueeze(0), x)
    maps = _form(settings, weight.shape, g.shape[2:], x.shape[2:])
    of_x = product_map.call(g, weight, maps, 2)
    of_bias = g.sum((0, *range(2, g.ndim))) if has_bias else None
    return [of_x if is_batch else of_x.squeeze(0), product_map.call(g, x, maps, 1), of_bias]


def _form(settings: Settings, weight: Sizes, spatial: Sizes, out: Sizes) -> Sequence[Callable[[Array, Array], Array]]:
    """Return the maps of the form Σ y ⊙ convolution(x, w) in x, w and y, for `product_map`.

    In a transposed convolution x is the gradient, and y the input.
    """
    return (
        lambda w, y: run("convolution_dx", y, w, *settings, spatial),
        lambda x, y: run("convolution_dw", x, y, *settings, weight),
        lambda x, w: run("convolution", x, w, None, *settings, out),
    )


@op("tl F", halves=True, batched="itself")
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


conv1d.second(_gradients, x="input", unneeded="d_input d_weight")


@op("tl F", halves=True, batched="itself")
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


conv2d.second(_gradients, x="input", unneeded="d_input d_weight")


@op("tl F", halves=True, batched="itself")
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


conv3d.second(_gradients, x="input", unneeded="d_input d_weight")


@op("tl F", batched="itself")
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


conv_transpose1d.second(_gradients_of_transposed, x="input", unneeded="d_input d_weight spatial")


@op("tl F", batched="itself")
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


conv_transpose2d.second(_gradients_of_transposed, x="input", unneeded="d_input d_weight spatial")


@op("tl F", batched="itself")
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


conv_transpose3d.second(_gradients_of_transposed, x="input", unneeded="d_input d_weight spatial")

"""Exporters of convolutions, pooling, padding, and of the layouts of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports


def each(number: Any, dims: int) -> list[int]:
    """Return a number for each dim."""
    return (
        [int(n) for n in number]
        if isinstance(number, list | tuple) and len(number) > 1
        else [int(number[0] if isinstance(number, list | tuple) else number)] * dims
    )


def with_batch(g: Builder, input: Value, dims: int) -> tuple[Value, bool]:
    """Return a sample as a batch of one, and whether it was one sample.  Raises: UnsupportedError for integers"""
    if not input.dtype.is_floating_point:
        raise UnsupportedError(f"an input of {input.dtype}")
    is_sample = input.ndim == dims + 1
    if not is_sample:
        return input, False
    return g.op("Unsqueeze", input, [0], shape=(1, *(input.shape or ()))), True


def without_batch(g: Builder, output: Value, is_sample: bool) -> Value:
    """Undo `with_batch`."""
    return g.op("Squeeze", output, [0]) if is_sample else output


@exports("conv1d", "conv2d", "conv3d")
def _(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    dims = weight.ndim - 2
    x, is_sample = with_batch(g, input, dims)
    kernel, dilations = [g.size(weight, d + 2) for d in range(dims)], each(dilation, dims)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        pads = [*(n // 2 for n in total), *(n - n // 2 for n in total)]
    else:
        pads = [0] * 2 * dims if padding == "valid" else each(padding, dims) * 2
    y = g.op(
        "Conv", x, weight, bias, kernel_shape=kernel, strides=each(stride, dims), pads=pads, dilations=dilations,
        group=groups,
    )  # fmt: skip
    return without_batch(g, y, is_sample)


@exports("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Value:
    dims = weight.ndim - 2
    x, is_sample = with_batch(g, input, dims)
    y = g.op(
        "ConvTranspose", x, weight, bias, kernel_shape=[g.size(weight, d + 2) for d in range(dims)],
        strides=each(stride, dims), pads=each(padding, dims) * 2, output_padding=each(output_padding, dims),
        dilations=each(dilation, dims), group=groups,
    )  # fmt: skip
    return without_batch(g, y, is_sample)


def _windows(dims: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool) -> dict[str, Any]:
    kernel = each(kernel_size, dims)
    steps = kernel if stride is None or stride == () else each(stride, dims)
    return {"kernel_shape": kernel, "strides": steps, "pads": each(padding, dims) * 2, "ceil_mode": int(ceil_mode)}


def _without_late_windows(
    g: Builder, y: Value, x: Value, dims: int, windows: dict[str, Any], dilation: Any = 1
) -> Value:
    """Return a pooled tensor without windows that begin behind the input: ONNX counts them with ceil_mode.

    Raises: UnsupportedError for a dim whose size varies, if it may have such a window
    """
    for d in range(dims if windows["ceil_mode"] else 0):
        size, stride, before = g.size(x, d - dims), windows["strides"][d], windows["pads"][d]
        reach = each(dilation, dims)[d] * (windows["kernel_shape"][d] - 1) + 1
        if before + stride <= reach:
            continue
        if isinstance(size, Value):
            raise UnsupportedError("ceil_mode for a dim whose size varies, with windows that may lie behind it")
        count = -((size + 2 * before - reach) // -stride) + 1
        if (count - 1) * stride >= size + before:
            y = g.op("Slice", y, [0], [count - 1], [x.ndim - dims + d])
    return y


@exports("max_pool")
def _(
    g: Builder, input: Value, dims: int, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Value:  # fmt: skip
    x, is_sample = with_batch(g, input, dims)
    windows = _windows(dims, kernel_size, stride, padding, ceil_mode)
    y = g.op("MaxPool", x, **windows, dilations=each(dilation, dims))
    return without_batch(g, _without_late_windows(g, y, x, dims, windows, dilation), is_sample)


@exports("max_pool_with_indices")
def _(
    g: Builder, input: Value, dims: int, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Value, Value]:  # fmt: skip
    """The places of ONNX count through the whole tensor, those of PyTorch through one channel."""
    x, is_sample = with_batch(g, input, dims)
    windows = _windows(dims, kernel_size, stride, padding, ceil_mode)
    y, places = g.op("MaxPool", x, **windows, dilations=each(dilation, dims), outputs=2)
    places = Value(places.name, dtypes.int64)
    y = _without_late_windows(g, y, x, dims, windows, dilation)
    places = _without_late_windows(g, places, x, dims, windows, dilation)
    within = g.op("Mod", places, g.constant(g.product([g.size(x, d) for d in range(-dims, 0)])))
    return without_batch(g, y, is_sample), without_batch(g, within, is_sample)


@exports("avg_pool")
def avg_pool(
    g: Builder, input: Value, dims: int, kernel_size: Any, stride: Any = None, padding: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Value:  # fmt: skip
    """Return the mean of each window."""
    x, is_sample = with_batch(g, input, dims)
    windows = _windows(dims, kernel_size, stride, padding, ceil_mode)
    y = g.op("AveragePool", x, **windows, count_include_pad=int(count_include_pad))
    y = _without_late_windows(g, y, x, dims, windows)
    if divisor_override is not None:
        if ceil_mode or (any(each(padding, dims)) and not count_include_pad):
            raise UnsupportedError("divisor_override with windows that are not full")
        y = g.op("Mul", y, float(np.prod(each(kernel_size, dims))) / divisor_override)
    return without_batch(g, y, is_sample)


def _whole(g: Builder, input: Value, dims: int, output_size: Any) -> list[Any]:
    given = [output_size] * dims if output_size is None or isinstance(output_size, int) else list(output_size)
    return [g.size(input, d - dims) if n is None else n for d, n in enumerate(given)]


@exports("adaptive_avg_pool")
def adaptive_avg_pool(g: Builder, input: Value, dims: int, output_size: Any) -> Value:
    """Return a mean over all positions, an AveragePool where windows are equal, else products with matrices."""
    out = _whole(g, input, dims, output_size)
    if all(n == 1 for n in out):
        return g.op("ReduceMean", input, list(range(-dims, 0)), keepdims=1)
    sizes = [g.size(input, d) for d in range(-dims, 0)]
    if any(isinstance(n, Value) for n in sizes):
        raise UnsupportedError("adaptive pooling of dims whose sizes vary")
    if all(n % m == 0 for n, m in zip(sizes, out, strict=True)):
        kernel = [n // m for n, m in zip(sizes, out, strict=True)]
        return avg_pool(g, input, dims, kernel, kernel)
    for axis, (size, count) in enumerate(zip(sizes, out, strict=True)):
        matrix = np.zeros((size, count), np.float32)
        for i in range(count):
            start, stop = i * size // count, -(-(i + 1) * size // count)
            matrix[start:stop, i] = 1 / (stop - start)
        input = along(g, input, matrix, input.ndim - dims + axis)
    return input


def along(g: Builder, input: Value, matrix: np.ndarray[Any, Any], axis: int) -> Value:
    """Return the product of one dim of a tensor with a matrix (size, new size)."""
    order = [d for d in range(input.ndim) if d != axis] + [axis]
    shape = [None if input.shape is None else input.shape[d] for d in order[:-1]] + [matrix.shape[1]]
    product = g.op("MatMul", g.transpose(input, order), g.cast(g.constant(matrix), input.dtype), shape=shape)
    return g.transpose(product, [order.index(d) for d in range(input.ndim)])


@exports("adaptive_max_pool")
def _(g: Builder, input: Value, dims: int, output_size: Any) -> tuple[Value, Any]:
    """Return a MaxPool where windows are equal, else maxima of the windows, one dim after the other."""
    return _adaptive_maxima(g, input, dims, output_size), None


def _adaptive_maxima(g: Builder, input: Value, dims: int, output_size: Any) -> Value:
    out = _whole(g, input, dims, output_size)
    if all(n == 1 for n in out):
        return g.op("ReduceMax", input, list(range(-dims, 0)), keepdims=1)
    sizes = [g.size(input, d) for d in range(-dims, 0)]
    if any(isinstance(n, Value) for n in sizes):
        raise UnsupportedError("adaptive pooling of dims whose sizes vary")
    for axis, (size, count) in enumerate(zip(sizes, out, strict=True)):
        at = input.ndim - dims + axis
        shape = [n if d != at else count for d, n in enumerate(input.shape or ())]
        parts = []
        for i in range(count):
            start, stop = i * size // count, -(-(i + 1) * size // count)
            parts.append(g.op("ReduceMax", g.op("Slice", input, [start], [stop], [at]), [at], keepdims=1))
        input = g.op("Concat", *parts, axis=at, shape=shape)
    return input


def _adaptive_max(dims: int) -> Any:
    def exporter(g: Builder, input: Value, output_size: Any) -> Value:
        return _adaptive_maxima(g, input, dims, output_size)

    return exporter


for _dims in (1, 2, 3):
    exports(f"nn.functional.adaptive_max_pool{_dims}d")(_adaptive_max(_dims))


@exports("pad")
def _(g: Builder, input: Value, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Value:
    before, after = [0] * input.ndim, [0] * input.ndim
    for i in range(len(pad) // 2):
        before[-1 - i], after[-1 - i] = pad[2 * i], pad[2 * i + 1]
    if mode == "circular":
        return _wrapped(g, input, before, after)
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    number = g.scalar(value or 0, input) if mode == "constant" else None
    return g.op("Pad", input, g.ints([*before, *after]), number, mode=names[mode])


def _wrapped(g: Builder, input: Value, before: list[Any], after: list[Any]) -> Value:
    """Return a tensor with its ends joined: opset 18 has no mode for it."""
    for dim, (first, last) in enumerate(zip(before, after, strict=True)):
        parts = [input]
        if first < 0 or last < 0:
            raise UnsupportedError("circular padding by negative numbers")
        if first:
            parts.insert(0, g.op("Slice", input, [-first], [2**63 - 1], [dim]))
        if last:
            parts.append(g.op("Slice", input, [0], [last], [dim]))
        if len(parts) > 1:
            input = g.op("Concat", *parts, axis=dim)
    return input


@exports("unfold")
def _(g: Builder, input: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Value:
    """Gather the rows and the columns of each window."""
    x, is_sample = with_batch(g, input, 2)
    kernel, steps, gaps, pads = (each(n, 2) for n in (kernel_size, stride, dilation, padding))
    if any(pads):
        x = g.op("Pad", x, [0, 0, *pads, 0, 0, *pads], g.scalar(0, x), mode="constant")
    sizes = [g.size(input, d) for d in (-2, -1)]
    if any(isinstance(n, Value) for n in sizes):
        raise UnsupportedError("unfold of dims whose sizes vary")
    out = []
    for axis in (0, 1):
        count = (sizes[axis] + 2 * pads[axis] - gaps[axis] * (kernel[axis] - 1) - 1) // steps[axis] + 1
        places = np.arange(kernel[axis])[:, None] * gaps[axis] + np.arange(count) * steps[axis]
        x = g.op("Gather", x, g.constant(places.astype(np.int64)), axis=2 + 2 * axis)
        out.append(count)
    x = g.op("Transpose", x, perm=[0, 1, 2, 4, 3, 5])
    channels = g.size(input, -3)
    y = g.op("Reshape", x, g.ints([0, channels * kernel[0] * kernel[1], out[0] * out[1]]))
    return without_batch(g, y, is_sample)


@exports("fold")
def _(
    g: Builder, input: Value, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Value:
    x, is_sample = with_batch(g, input, 1)
    y = g.op(
        "Col2Im", x, g.ints(each(output_size, 2)), g.ints(each(kernel_size, 2)), dilations=each(dilation, 2),
        pads=each(padding, 2) * 2, strides=each(stride, 2),
    )  # fmt: skip
    return without_batch(g, y, is_sample)


@exports("max_unpool")
def _(g: Builder, input: Value, indices: Value, dims: int, output_size: Any) -> Value:
    """Scatter the maxima of each channel to their places."""
    sizes = g.sizes(input)[:-dims]
    flat = [g.reshape(x, [*sizes, -1]) for x in (input, indices)]
    empty = g.op("Expand", g.scalar(0, input), g.ints([*sizes, g.product(list(output_size))]))
    y = g.op("ScatterElements", empty, flat[1], flat[0], axis=-1)
    return g.reshape(y, [*sizes, *output_size], g.result.shape)


MODES = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear"}
MODES |= {"trilinear": "linear", "bicubic": "cubic"}


@exports("nn.functional.interpolate")
def _(
    g: Builder,
    input: Value,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Value:
    dims = input.ndim - 2
    if mode == "area":
        return adaptive_avg_pool(g, input, dims, list((g.result.shape or ())[2:]) if size is None else size)
    if mode not in MODES:
        raise UnsupportedError(f"mode={mode!r}")
    if align_corners and antialias:
        raise UnsupportedError("antialias with align_corners, which onnxruntime leaves out")
    kind = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
    attributes: dict[str, Any] = {
        "mode": MODES[mode],
        "coordinate_transformation_mode": kind,
        "nearest_mode": ("floor" if mode == "nearest" else "round_prefer_ceil") if MODES[mode] == "nearest" else None,
        "cubic_coeff_a": (-0.5 if antialias else -0.75) if MODES[mode] == "cubic" else None,
        "antialias": 1 if antialias else None,
        "exclude_outside": 1 if antialias else None,
    }
    if size is None and not recompute_scale_factor:
        factors = np.array([1, 1, *(scale_factor if isinstance(scale_factor, list | tuple) else [scale_factor] * dims)])
        return g.op("Resize", input, None, g.constant(factors.astype(np.float32)), **attributes)
    if size is None:
        out = list((g.result.shape or ())[2:])
    else:
        out = list(size) if isinstance(size, list | tuple) else [size] * dims
    if None in out:
        raise UnsupportedError("recompute_scale_factor with sizes that vary")
    return g.op("Resize", input, None, None, g.ints([*g.sizes(input)[:2], *out]), **attributes)


@exports("nn.functional.affine_grid")
def _(g: Builder, theta: Value, size: Any, align_corners: bool | None = None) -> Value:
    """Multiply the centres of all elements, which are constant, with the map."""
    spatial = list(size)[2:]
    if any(isinstance(n, Value) for n in spatial):
        raise UnsupportedError("a grid whose sizes vary")
    ends = [1.0 if align_corners else (n - 1) / n for n in spatial]
    centres = [np.linspace(-e, e, n) if n > 1 else np.zeros(1) for e, n in zip(ends, spatial, strict=True)]
    points = np.stack([*np.meshgrid(*centres, indexing="ij")[::-1], np.ones(spatial)], axis=-1)
    base = g.cast(g.constant(points.reshape(-1, len(spatial) + 1)), theta.dtype)
    product = g.op("MatMul", base, g.transpose(theta, [0, 2, 1]))
    return g.reshape(product, [size[0], *spatial, len(spatial)], g.result.shape)


@exports("grid_sample")
def _(g: Builder, input: Value, grid: Value, mode: str, padding_mode: str, align_corners: bool) -> Value:
    names = {"bilinear": "linear", "bicubic": "cubic"} if g.opset >= 20 else {}
    if input.ndim > 4 and g.opset < 20:
        raise UnsupportedError("samples of volumes before opset 20")
    return g.op(
        "GridSample", input, grid, mode=names.get(mode, mode), padding_mode=padding_mode,
        align_corners=int(align_corners),
    )  # fmt: skip

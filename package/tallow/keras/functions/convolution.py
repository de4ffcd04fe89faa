"""Convolutions and pooling of tensors with channels last or first.

Letters: in, out channels; `spatial` stands for one, two or three dims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.keras.functions.operands import floats, tensor
from tallow.keras.windows import (
    Pads,
    Sizes,
    check_padding,
    from_first,
    is_channels_last,
    pad,
    same_padding,
    sizes,
    symmetric,
    to_first,
)
from tallow.nn import functional as F

# Indexed by the number of spatial dims minus one.
CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
MAXIMA = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
AVERAGES = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
ADAPTIVE_MAXIMA = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
ADAPTIVE_AVERAGES = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)

# ----------------------------------------------------------------------------------------------- channels-first tensors


def window_pads(x: Tensor, reach: Sizes, strides: Sizes, padding: str) -> Pads:
    """Return the padding of x for windows that span `reach` elements."""
    if padding == "valid":
        return [(0, 0)] * len(reach)
    if padding == "causal":
        return [(reach[0] - 1, 0)]
    return same_padding(x.shape[2:], reach, strides)


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, strides: Sizes, pads: Pads, dilation: Sizes, groups: int
) -> Tensor:
    """Convolve with asymmetric padding if necessary.

    Shapes:  x (batch, in, *spatial), weight (out, in / groups, *window) -> (batch, out, *windows)
    """
    padding = symmetric(pads)
    if padding is None:
        x, padding = pad(x, pads), (0,) * len(pads)
    return CONVOLUTIONS[len(pads) - 1](x, weight, bias, strides, padding, dilation, groups)


def convolve_transpose(
    x: Tensor, weight: Tensor, strides: Sizes, padding: str, output_padding: Sizes | None, dilation: Sizes
) -> Tensor:
    """Apply the adjoint of a convolution.

    Shapes:  x (batch, in, *windows), weight (in, out, *window)
    """
    rank = x.ndim - 2
    y = TRANSPOSED[rank - 1](x, weight, None, strides, dilation=dilation)
    # Compute the full result, then crop the padding of the adjoint convolution. Where the crop exceeds the result,
    # zeros are appended.
    reach = tuple((k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True))
    output_paddings = output_padding or (None,) * rank
    cuts = [
        _crop_and_length(n, r, s, padding, extra)
        for n, r, s, extra in zip(x.shape[2:], reach, strides, output_paddings, strict=True)
    ]
    return pad(y, [(-before, out + before - n) for (before, out), n in zip(cuts, y.shape[2:], strict=True)])


def _crop_and_length(size: int, reach: int, stride: int, padding: str, output_padding: int | None) -> tuple[int, int]:
    """Return the number of elements to crop at the start of an axis, and the length of the result."""
    out = transposed_length(size, reach, stride, padding, output_padding)
    if padding == "valid":
        return 0, out
    total = out - (size - 1) * stride + reach - 2  # zeros around the input, which the stride has dilated
    return max(reach - 1 - (total + 1) // 2, 0), out


def transposed_length(size: int, reach: int, stride: int, padding: str, output_padding: int | None) -> int:
    """Return the output length of a transposed convolution along an axis."""
    if output_padding is None:
        return size * stride + (max(reach - stride, 0) if padding == "valid" else 0)
    padded = 2 * (reach // 2) if padding == "same" else 0
    return (size - 1) * stride + reach - padded + output_padding


def to_conv_weight(kernel: Tensor) -> Tensor:
    """Convert a Keras kernel, (*window, in, out), to a convolution weight, (out, in, *window)."""
    rank = kernel.ndim - 2
    return kernel.permute(rank + 1, rank, *range(rank))


def depthwise_weight(kernel: Tensor) -> Tensor:
    """Convert a kernel (*window, in, depth_multiplier) to a grouped weight (in · depth_multiplier, 1, *window)."""
    rank = kernel.ndim - 2
    weight = kernel.permute(rank, rank + 1, *range(rank))
    return weight.reshape(-1, 1, *kernel.shape[:rank])


def average(x: Tensor, pool_size: Sizes, strides: Sizes, pads: Pads) -> Tensor:
    """Return the mean of each window without the padding."""
    function = AVERAGES[len(pads) - 1]
    padding = symmetric(pads)
    if padding is not None:
        return function(x, pool_size, strides, padding, count_include_pad=False)
    y = function(pad(x, pads), pool_size, strides)
    inside = x.new_ones(1, 1, *x.shape[2:])
    return y / function(pad(inside, pads), pool_size, strides)


def maximum(x: Tensor, pool_size: Sizes, strides: Sizes, pads: Pads) -> Tensor:
    """Return the maximum of each window."""
    padding = symmetric(pads)
    if padding is None:
        x, padding = pad(x, pads, float("-inf")), (0,) * len(pads)
    return MAXIMA[len(pads) - 1](x, pool_size, strides, padding)


# ------------------------------------------------------------------------------------------------- keras.ops functions


def _spatial(function: str, x: Tensor) -> int:
    if not 3 <= x.ndim <= 5:
        raise ShapeError(f"{function}: expected 3, 4 or 5 dims, got shape {tuple(x.shape)}")
    return x.ndim - 2


def conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Convolve; the kernel's number of input channels determines the number of groups.

    Shapes:  inputs (batch, *spatial, in), or with channels first; kernel (*window, in / groups, out)
    """
    x, weight = floats(inputs), to_conv_weight(floats(kernel))
    is_last = is_channels_last("conv", data_format)
    groups = x.shape[-1 if is_last else 1] // weight.shape[1]
    return _run_conv("conv", x, weight, strides, padding, is_last, dilation_rate, groups)


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Convolve each channel with its own filters.

    Shapes:  inputs (batch, *spatial, in), kernel (*window, in, depth_multiplier) -> (..., in · depth_multiplier)
    """
    x, weight = floats(inputs), depthwise_weight(floats(kernel))
    is_last = is_channels_last("depthwise_conv", data_format)
    channels = x.shape[-1 if is_last else 1]
    return _run_conv("depthwise_conv", x, weight, strides, padding, is_last, dilation_rate, channels)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Apply a depthwise convolution, then a pointwise convolution that mixes the channels."""
    y = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(y, pointwise_kernel, data_format=data_format)


def _run_conv(
    function: str, x: Tensor, weight: Tensor, strides: Any, padding: str, is_last: bool, dilation: Any, groups: int
) -> Tensor:
    rank = _spatial(function, x)
    strides, dilation = sizes(function, "strides", strides, rank), sizes(function, "dilation_rate", dilation, rank)
    padding = check_padding(function, padding, *(("causal",) if rank == 1 else ()))
    reach = tuple((k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True))
    x = to_first(x, is_last)
    y = convolve(x, weight, None, strides, window_pads(x, reach, strides, padding), dilation, groups)
    return from_first(y, is_last)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Apply a transposed convolution.

    Shapes:  inputs (batch, *windows, in), or with channels first; kernel (*window, out, in)
    """
    x, weight, name = floats(inputs), to_conv_weight(floats(kernel)), "conv_transpose"
    rank, is_last = _spatial(name, x), is_channels_last(name, data_format)
    strides, dilation = sizes(name, "strides", strides, rank), sizes(name, "dilation_rate", dilation_rate, rank)
    if output_padding is not None:
        output_padding = sizes(name, "output_padding", output_padding, rank, 0)
    padding = check_padding(name, padding)
    y = convolve_transpose(to_first(x, is_last), weight, strides, padding, output_padding, dilation)
    return from_first(y, is_last)


def _pooling(name: str, pool: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def pooled(
        inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
    ) -> Tensor:
        x = tensor(inputs)
        rank, is_last = _spatial(name, x), is_channels_last(name, data_format)
        size = sizes(name, "pool_size", pool_size, rank)
        steps = size if strides is None else sizes(name, "strides", strides, rank)
        x = to_first(x, is_last)
        return from_first(pool(x, size, steps, window_pads(x, size, steps, check_padding(name, padding))), is_last)

    return pooled


def _adaptive(name: str, functions: Sequence[Callable[..., Tensor]]) -> Callable[..., Tensor]:
    def pooled(inputs: Any, output_size: Any, data_format: str | None = None) -> Tensor:
        x = floats(inputs)
        rank, is_last = _spatial(name, x), is_channels_last(name, data_format)
        parts = functions[rank - 1](to_first(x, is_last), sizes(name, "output_size", output_size, rank))
        return from_first(parts, is_last)

    return pooled


NN: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (conv, conv_transpose, depthwise_conv, separable_conv)
} | {
    "max_pool": _pooling("max_pool", maximum),
    "average_pool": _pooling("average_pool", average),
    "adaptive_max_pool": _adaptive("adaptive_max_pool", ADAPTIVE_MAXIMA),
    "adaptive_average_pool": _adaptive("adaptive_average_pool", ADAPTIVE_AVERAGES),
}

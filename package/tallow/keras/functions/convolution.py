"""Convolutions and pooling, of tensors with their channels last or first.

Letters: in, out channels; `spatial` stands for one, two or three dims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow.errors import ShapeError
from tallow.keras.functions.operands import floats, tensor
from tallow.keras.windows import (
    Pads,
    Sizes,
    checked_format,
    checked_padding,
    from_first,
    pad,
    same_padding,
    sizes,
    symmetric,
    to_first,
)
from tallow.nn import functional as F
from tallow.tensor import Tensor

# By the number of spatial dims, less one.
CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
MAXIMA = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
AVERAGES = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
ADAPTIVE_MAXIMA = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
ADAPTIVE_AVERAGES = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)

# ----------------------------------------------------------------- of tensors with the channels next to the batch


def window_pads(x: Tensor, reach: Sizes, strides: Sizes, padding: str) -> Pads:
    """What is added around x for windows that reach so far."""
    if padding == "valid":
        return [(0, 0)] * len(reach)
    if padding == "causal":
        return [(reach[0] - 1, 0)]
    return same_padding(x.shape[2:], reach, strides)


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, strides: Sizes, pads: Pads, dilation: Sizes, groups: int
) -> Tensor:
    """Shapes:  x (batch, in, *spatial), weight (out, in / groups, *window) -> (batch, out, *windows)"""
    both = symmetric(pads)
    if both is None:
        x, both = pad(x, pads), (0,) * len(pads)
    return CONVOLUTIONS[len(pads) - 1](x, weight, bias, strides, both, dilation, groups)


def convolve_back(
    x: Tensor, weight: Tensor, strides: Sizes, padding: str, output_padding: Sizes | None, dilation: Sizes
) -> Tensor:
    """The adjoint of a convolution.  Shapes:  x (batch, in, *windows), weight (in, out, *window)"""
    rank = x.ndim - 2
    y = TRANSPOSED[rank - 1](x, weight, None, strides, dilation=dilation)
    # All of the result, of which the padding of the convolution that this one turns around is cut off; where that
    # reaches over the end, nothing was added there.
    reach = tuple((k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True))
    more = output_padding or (None,) * rank
    cuts = [_cut(n, r, s, padding, extra) for n, r, s, extra in zip(x.shape[2:], reach, strides, more, strict=True)]
    return pad(y, [(-before, out + before - n) for (before, out), n in zip(cuts, y.shape[2:], strict=True)])


def _cut(size: int, reach: int, stride: int, padding: str, output_padding: int | None) -> tuple[int, int]:
    """What is cut off before the result along an axis, and the length of the result."""
    out = length_back(size, reach, stride, padding, output_padding)
    if padding == "valid":
        return 0, out
    both = out - (size - 1) * stride + reach - 2  # of zeros around the input, stretched by the stride
    return max(reach - 1 - (both + 1) // 2, 0), out


def length_back(size: int, reach: int, stride: int, padding: str, output_padding: int | None) -> int:
    """The length of what a convolution back gives."""
    if output_padding is None:
        return size * stride + (max(reach - stride, 0) if padding == "valid" else 0)
    padded = 2 * (reach // 2) if padding == "same" else 0
    return (size - 1) * stride + reach - padded + output_padding


def turned(kernel: Tensor) -> Tensor:
    """(*window, in, out) -> (out, in, *window)"""
    rank = kernel.ndim - 2
    return kernel.permute(rank + 1, rank, *range(rank))


def depthwise_weight(kernel: Tensor) -> Tensor:
    """(*window, in, depth_multiplier) -> (in · depth_multiplier, 1, *window), as a convolution in groups takes it."""
    rank = kernel.ndim - 2
    weight = kernel.permute(rank, rank + 1, *range(rank))
    return weight.reshape(-1, 1, *kernel.shape[:rank])


def average(x: Tensor, pool_size: Sizes, strides: Sizes, pads: Pads) -> Tensor:
    """The mean of each window; what is padded does not count."""
    function = AVERAGES[len(pads) - 1]
    both = symmetric(pads)
    if both is not None:
        return function(x, pool_size, strides, both, count_include_pad=False)
    y = function(pad(x, pads), pool_size, strides)
    real = x.new_ones(1, 1, *x.shape[2:])
    return y / function(pad(real, pads), pool_size, strides)


def maximum(x: Tensor, pool_size: Sizes, strides: Sizes, pads: Pads) -> Tensor:
    both = symmetric(pads)
    if both is None:
        x, both = pad(x, pads, float("-inf")), (0,) * len(pads)
    return MAXIMA[len(pads) - 1](x, pool_size, strides, both)


# ------------------------------------------------------------------------------------------- as keras.ops has them


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
    """A convolution, in groups if the kernel has fewer inputs than there are channels.

    Shapes:  inputs (batch, *spatial, in), or with channels first; kernel (*window, in / groups, out)
    """
    x, weight = floats(inputs), turned(floats(kernel))
    is_last = checked_format("conv", data_format)
    groups = x.shape[-1 if is_last else 1] // weight.shape[1]
    return _convolved("conv", x, weight, strides, padding, is_last, dilation_rate, groups)


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """A convolution of each channel by itself.

    Shapes:  inputs (batch, *spatial, in), kernel (*window, in, depth_multiplier) -> (..., in · depth_multiplier)
    """
    x, weight = floats(inputs), depthwise_weight(floats(kernel))
    is_last = checked_format("depthwise_conv", data_format)
    channels = x.shape[-1 if is_last else 1]
    return _convolved("depthwise_conv", x, weight, strides, padding, is_last, dilation_rate, channels)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """A depthwise convolution, and a map of the channels at each place."""
    y = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(y, pointwise_kernel, data_format=data_format)


def _convolved(
    function: str, x: Tensor, weight: Tensor, strides: Any, padding: str, is_last: bool, dilation: Any, groups: int
) -> Tensor:
    rank = _spatial(function, x)
    strides, dilation = sizes(function, "strides", strides, rank), sizes(function, "dilation_rate", dilation, rank)
    padding = checked_padding(function, padding, *(("causal",) if rank == 1 else ()))
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
    """The adjoint of a convolution.

    Shapes:  inputs (batch, *windows, in), or with channels first; kernel (*window, out, in)
    """
    x, weight, name = floats(inputs), turned(floats(kernel)), "conv_transpose"
    rank, is_last = _spatial(name, x), checked_format(name, data_format)
    strides, dilation = sizes(name, "strides", strides, rank), sizes(name, "dilation_rate", dilation_rate, rank)
    if output_padding is not None:
        output_padding = sizes(name, "output_padding", output_padding, rank, 0)
    padding = checked_padding(name, padding)
    y = convolve_back(to_first(x, is_last), weight, strides, padding, output_padding, dilation)
    return from_first(y, is_last)


def _pooling(name: str, pool: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def pooled(
        inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
    ) -> Tensor:
        x = tensor(inputs)
        rank, is_last = _spatial(name, x), checked_format(name, data_format)
        size = sizes(name, "pool_size", pool_size, rank)
        steps = size if strides is None else sizes(name, "strides", strides, rank)
        x = to_first(x, is_last)
        return from_first(pool(x, size, steps, window_pads(x, size, steps, checked_padding(name, padding))), is_last)

    return pooled


def _adaptive(name: str, functions: Sequence[Callable[..., Tensor]]) -> Callable[..., Tensor]:
    def pooled(inputs: Any, output_size: Any, data_format: str | None = None) -> Tensor:
        x = floats(inputs)
        rank, is_last = _spatial(name, x), checked_format(name, data_format)
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

"""Pooling in one, two and three spatial dims. The ops take the number of dims; each public function passes its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError
from tallow.ops import adaptive_pooling, pooling
from tallow.ops.windows import IntOrInts, expect_filled, expect_spatial, sizes

OutputSize = int | Sequence[int | None] | None


def _adaptive_max_pool(dims: int, return_indices: bool, input: Tensor, output_size: OutputSize) -> Any:
    windows = None if return_indices else adaptive_pooling.equal_windows(input.array, dims, output_size)
    if windows is not None:
        return apply(pooling.max_pool, input, dims, windows)
    maxima, indices = apply(adaptive_pooling.adaptive_max_pool, input, dims, output_size)
    return (maxima, indices) if return_indices else maxima


def _max_unpool(
    dims: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None,
    padding: IntOrInts,
    output_size: Sequence[int] | None,
) -> Tensor:
    name = f"max_unpool{dims}d"
    expect_spatial(name, input.array.shape, dims)
    expect_filled(name, input.array.shape, dims)
    kernel = sizes(name, "kernel_size", kernel_size, dims, 1)
    steps = kernel if stride is None else sizes(name, "stride", stride, dims, 1)
    pads = sizes(name, "padding", padding, dims, 0)
    spatial = input.array.shape[-dims:]
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(spatial, steps, kernel, pads, strict=True)]
    size = default if output_size is None else [int(n) for n in output_size][-dims:]
    if len(size) != dims or any(not d - s < n < d + s for n, d, s in zip(size, default, steps, strict=True)):
        raise ArgumentError(
            f"{name}: invalid output_size {output_size}; expected {default}, give or take less than {steps}"
        )
    return apply(pooling.max_unpool, input, indices, dims, size)


def _lp_pool(
    dims: int, input: Tensor, norm_type: float, kernel_size: IntOrInts, stride: IntOrInts | None, ceil_mode: bool
) -> Tensor:
    """Compute (Σ x^p)^(1/p) from the mean of each window: the sum is the mean times the number of elements.

    As in PyTorch, relu stops the infinite slope of the root at 0: the gradient of a window of zeros is 0.
    """
    if norm_type == math.inf:
        return pooling.max_pool.call(input.abs(), dims, kernel_size, stride, 0, 1, ceil_mode)
    count = math.prod(sizes(f"lp_pool{dims}d", "kernel_size", kernel_size, dims, 1))
    mean = apply(pooling.avg_pool, input.pow(norm_type), dims, kernel_size, stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu() * count).pow(1 / norm_type)


@public("tl F")
def max_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window. Padding counts as -∞.

    Args:
        stride: kernel_size if None.
        ceil_mode: the last window may reach over the end.
        return_indices: return the maxima, and the index of each in the flattened spatial dims of the input.

    Shapes:  input (N, C, L) or (C, L) -> (N, C, *out) or (C, *out)
    """
    op = pooling.max_pool_with_indices if return_indices else pooling.max_pool
    return op.call(input, 1, kernel_size, stride, padding, dilation, ceil_mode)


@public("tl F")
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool1d`.

    `return_indices` has no effect.
    """
    return pooling.max_pool_with_indices.call(input, 1, kernel_size, stride, padding, dilation, ceil_mode)


@public("tl F")
def max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window. Padding counts as -∞.

    Args:
        stride: kernel_size if None.
        ceil_mode: the last window may reach over the end.
        return_indices: return the maxima, and the index of each in the flattened spatial dims of the input.

    Shapes:  input (N, C, H, W) or (C, H, W) -> (N, C, *out) or (C, *out)
    """
    op = pooling.max_pool_with_indices if return_indices else pooling.max_pool
    return op.call(input, 2, kernel_size, stride, padding, dilation, ceil_mode)


@public("F")
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool2d`.

    `return_indices` has no effect.
    """
    return pooling.max_pool_with_indices.call(input, 2, kernel_size, stride, padding, dilation, ceil_mode)


@public("tl F")
def max_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window. Padding counts as -∞.

    Args:
        stride: kernel_size if None.
        ceil_mode: the last window may reach over the end.
        return_indices: return the maxima, and the index of each in the flattened spatial dims of the input.

    Shapes:  input (N, C, D, H, W) or (C, D, H, W) -> (N, C, *out) or (C, *out)
    """
    op = pooling.max_pool_with_indices if return_indices else pooling.max_pool
    return op.call(input, 3, kernel_size, stride, padding, dilation, ceil_mode)


@public("F")
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flattened spatial dims; see `max_pool3d`.

    `return_indices` has no effect.
    """
    return pooling.max_pool_with_indices.call(input, 3, kernel_size, stride, padding, dilation, ceil_mode)


@public("F")
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Any = None,
) -> Tensor:
    """Return zeros with the input's elements at the positions that `max_pool1d` took them from.

    Args:
        indices: as `max_pool1d` returns them.
        output_size: size of the pooling's input, with or without N and C; the smallest possible if None.
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@public("F")
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Any = None,
) -> Tensor:
    """Return zeros with the input's elements at the positions that `max_pool2d` took them from.

    Args:
        indices: as `max_pool2d` returns them.
        output_size: size of the pooling's input, with or without N and C; the smallest possible if None.
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@public("F")
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Any = None,
) -> Tensor:
    """Return zeros with the input's elements at the positions that `max_pool3d` took them from.

    Args:
        indices: as `max_pool3d` returns them.
        output_size: size of the pooling's input, with or without N and C; the smallest possible if None.
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


@public("tl F")
def avg_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window; see `avg_pool2d`."""
    return apply(pooling.avg_pool, input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad)


@public("F")
def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window.

    Args:
        stride: kernel_size if None.
        ceil_mode: the last window may reach over the end.
        count_include_pad: padding zeros count as elements.
        divisor_override: divide by this instead of the number of elements.

    Shapes:  input (N, C, H, W) or (C, H, W) -> (N, C, *out) or (C, *out)
    """
    return apply(
        pooling.avg_pool, input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@public("F")
def avg_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window.

    Args:
        stride: kernel_size if None.
        ceil_mode: the last window may reach over the end.
        count_include_pad: padding zeros count as elements.
        divisor_override: divide by this instead of the number of elements.

    Shapes:  input (N, C, D, H, W) or (C, D, H, W) -> (N, C, *out) or (C, *out)
    """
    return apply(
        pooling.avg_pool, input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@public("F")
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window, p = norm_type; the greatest |x| for p = ∞."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@public("F")
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window, p = norm_type; the greatest |x| for p = ∞."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@public("F")
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (Σ x^p)^(1/p) of each window, p = norm_type; the greatest |x| for p = ∞."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


@public("tl F")
def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Return means over windows chosen so that the output has `output_size`; None keeps the input's size.

    Window i spans ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.

    Shapes:  input (N, C, L) or (C, L) -> the same with spatial dims output_size
    """
    return apply(adaptive_pooling.adaptive_avg_pool, input, 1, output_size)


@public("F")
def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Return means over windows chosen so that the output has `output_size`; None keeps the input's size.

    Window i spans ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.

    Shapes:  input (N, C, H, W) or (C, H, W) -> the same with spatial dims output_size
    """
    return apply(adaptive_pooling.adaptive_avg_pool, input, 2, output_size)


@public("F")
def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Return means over windows chosen so that the output has `output_size`; None keeps the input's size.

    Window i spans ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.

    Shapes:  input (N, C, D, H, W) or (C, D, H, W) -> the same with spatial dims output_size
    """
    return apply(adaptive_pooling.adaptive_avg_pool, input, 3, output_size)


@public("F")
@recorded_whole
def adaptive_max_pool1d(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool1d`."""
    return _adaptive_max_pool(1, return_indices, input, output_size)


@public("F")
@recorded_whole
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool1d`, and their indices in the flattened spatial dims.

    `return_indices` has no effect.
    """
    return _adaptive_max_pool(1, True, input, output_size)


@public("F")
@recorded_whole
def adaptive_max_pool2d(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool2d`."""
    return _adaptive_max_pool(2, return_indices, input, output_size)


@public("F")
@recorded_whole
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool2d`, and their indices in the flattened spatial dims.

    `return_indices` has no effect.
    """
    return _adaptive_max_pool(2, True, input, output_size)


@public("F")
@recorded_whole
def adaptive_max_pool3d(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any:
    """Return maxima over windows chosen so that the output has `output_size`; see `adaptive_avg_pool3d`."""
    return _adaptive_max_pool(3, return_indices, input, output_size)


@public("F")
@recorded_whole
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of `adaptive_max_pool3d`, and their indices in the flattened spatial dims.

    `return_indices` has no effect.
    """
    return _adaptive_max_pool(3, True, input, output_size)

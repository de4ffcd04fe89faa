"""Pooling: for one, two and three dims, the same functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tallow.apply import apply
from tallow.errors import ArgumentError
from tallow.offer import offer
from tallow.ops import adaptive_pooling, pooling
from tallow.ops.windows import IntOrInts, expect_filled, expect_spatial, sizes
from tallow.tensor import Tensor

OutputSize = int | Sequence[int | None] | None

Function = Callable[..., Any]


def _named(places: str, name: str) -> Callable[[Function], Function]:
    def put(function: Function) -> Function:
        function.__name__ = function.__qualname__ = name
        return offer(places)(function)

    return put


def _both_if_1d(dims: int) -> str:
    """Where PyTorch offers what for one dim only it has beside torch.nn.functional."""
    return "tl F" if dims == 1 else "F"


def _offer_max_pool(dims: int) -> None:
    @_named("tl F", f"max_pool{dims}d")
    def max_pool(
        input: Tensor,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        padding: IntOrInts = 0,
        dilation: IntOrInts = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The maximum of each window; padding counts as -∞.

        Args:
            stride: kernel_size if None.
            ceil_mode: the last window may reach over the end.
            return_indices: return the maxima, and where each lies in the flattened spatial dims of the input.

        Shapes:  input (N, C, *spatial) or (C, *spatial) -> (N, C, *out) or (C, *out)
        """
        made = pooling.max_pool_with_indices if return_indices else pooling.max_pool
        return apply(made, input, dims, kernel_size, stride, padding, dilation, ceil_mode)

    @_named(_both_if_1d(dims), f"max_pool{dims}d_with_indices")
    def max_pool_with_indices(
        input: Tensor,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        padding: IntOrInts = 0,
        dilation: IntOrInts = 1,
        ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The maxima of windows, and where each lies in the flattened spatial dims of the input."""
        return apply(pooling.max_pool_with_indices, input, dims, kernel_size, stride, padding, dilation, ceil_mode)

    @_named("F", f"max_unpool{dims}d")
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        padding: IntOrInts = 0,
        output_size: Any = None,
    ) -> Tensor:
        """Zeros, with the input's elements at the places that max pooling took them from.

        Args:    output_size: that of the pooling's input, with or without N and C; the smallest possible if None
        """
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


def _offer_lp_pool(dims: int) -> None:
    @_named("F", f"lp_pool{dims}d")
    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        """(Σ x^p)^(1/p) of each window, p = norm_type."""
        count = math.prod(sizes(f"lp_pool{dims}d", "kernel_size", kernel_size, dims, 1))
        mean = apply(pooling.avg_pool, input.pow(norm_type), dims, kernel_size, stride, 0, ceil_mode)
        return (mean.sign() * mean.abs() * count).pow(1 / norm_type)


def _offer_adaptive_pool(dims: int) -> None:
    @_named(_both_if_1d(dims), f"adaptive_avg_pool{dims}d")
    def adaptive_avg_pool(input: Tensor, output_size: OutputSize) -> Tensor:
        """Means over windows chosen so that the output has `output_size`, None meaning the input's.

        Window i reaches from ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.

        Shapes:  input (N, C, *spatial) or (C, *spatial) -> the same with spatial dims output_size
        """
        return apply(adaptive_pooling.adaptive_avg_pool, input, dims, output_size)

    @_named("F", f"adaptive_max_pool{dims}d")
    def adaptive_max_pool(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any:
        """Maxima over windows chosen so that the output has `output_size`; see adaptive_avg_pool."""
        y, places = apply(adaptive_pooling.adaptive_max_pool, input, dims, output_size)
        return (y, places) if return_indices else y

    @_named("F", f"adaptive_max_pool{dims}d_with_indices")
    def adaptive_max_pool_with_indices(input: Tensor, output_size: OutputSize) -> tuple[Tensor, Tensor]:
        return apply(adaptive_pooling.adaptive_max_pool, input, dims, output_size)


@_named("tl F", "avg_pool1d")
def avg_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window; see avg_pool2d."""
    return apply(pooling.avg_pool, input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _offer_avg_pool(dims: int) -> None:
    @_named("F", f"avg_pool{dims}d")
    def avg_pool(
        input: Tensor,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        padding: IntOrInts = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        """The mean of each window.

        Args:
            stride: kernel_size if None.
            ceil_mode: the last window may reach over the end.
            count_include_pad: the zeros that are padded count as elements.
            divisor_override: divide by this instead of by the number of elements.

        Shapes:  input (N, C, *spatial) or (C, *spatial) -> (N, C, *out) or (C, *out)
        """
        return apply(
            pooling.avg_pool, input, dims, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )


for _dims in (1, 2, 3):
    _offer_max_pool(_dims)
    _offer_lp_pool(_dims)
    _offer_adaptive_pool(_dims)
for _dims in (2, 3):
    _offer_avg_pool(_dims)

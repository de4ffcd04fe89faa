"""ONNX reductions. `axes` is an attribute at first, an input of ReduceSum from opset 13, of the others from 18.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import math
from collections.abc import Callable

import tallow as tl
from tallow import Tensor
from tallow.onnx.operators.element_types import range_of
from tallow.onnx.operators.registry import Ints, ints, operator
from tallow.ops.dims import normalize_dim

Axes = tuple[int, ...]
Reduction = Callable[[Tensor, Axes, bool], Tensor]


def reduction(name: str, input_from: int = 18) -> Callable[[Reduction], Reduction]:
    """Register a reduction over `axes`: an attribute, and from the opset `input_from` on an input."""

    def register(function: Reduction) -> Reduction:
        def by_input(
            data: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
        ) -> Tensor:
            chosen = () if axes is None else ints(axes)
            if not chosen and noop_with_empty_axes:
                return function(data.unsqueeze(-1), (-1,), False)
            return function(data, chosen or tuple(range(data.dim())), bool(keepdims))

        def by_attribute(data: Tensor, *, axes: Axes = (), keepdims: int = 1) -> Tensor:
            return function(data, tuple(axes) or tuple(range(data.dim())), bool(keepdims))

        for form, ending in ((by_input, ""), (by_attribute, "_of_axes")):
            form.__name__ = form.__qualname__ = function.__name__.lstrip("_") + ending
            form.__doc__ = function.__doc__
            globals()[form.__name__] = form  # where generated code finds it
        operator(name, since=1, until=input_from - 1)(by_attribute)
        operator(name, since=input_from)(by_input)
        return function

    return register


@reduction("ReduceSum", input_from=13)
def _reduce_sum(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return tl.sum(data, axes, keepdim)


@reduction("ReduceMean")
def _reduce_mean(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return tl.mean(data, axes, keepdim)


def _extreme_of(function: Callable[..., Tensor], data: Tensor, axes: Axes, keepdim: bool, of_nothing: float) -> Tensor:
    """Take the maximum or minimum; of no elements it is the least or the greatest value of the dtype."""
    if isinstance(data, Tensor) and not data.numel():
        if not data.dtype.is_floating_point:
            low, high = (0, 1) if data.dtype == tl.bool else range_of(data.dtype)
            of_nothing = low if of_nothing < 0 else high
        counts = tl.sum(tl.zeros_like(data), axes, keepdim)
        return tl.full(tuple(counts.shape), of_nothing, dtype=data.dtype)
    return function(data, axes, keepdim)


@reduction("ReduceMax")
def _reduce_max(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return _extreme_of(tl.amax, data, axes, keepdim, -math.inf)


@reduction("ReduceMin")
def _reduce_min(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return _extreme_of(tl.amin, data, axes, keepdim, math.inf)


@reduction("ReduceProd")
def _reduce_prod(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    for axis in sorted((normalize_dim(axis, data.dim(), "ReduceProd") for axis in axes), reverse=True):
        data = tl.prod(data, axis, keepdim)
    return data


@reduction("ReduceL1")
def _reduce_l1(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return tl.sum(tl.abs(data), axes, keepdim)


@reduction("ReduceL2")
def _reduce_l2(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return tl.sqrt(tl.sum(data * data, axes, keepdim))


@reduction("ReduceSumSquare")
def _reduce_sum_square(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return tl.sum(data * data, axes, keepdim)


@reduction("ReduceLogSum")
def _reduce_log_sum(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return tl.log(tl.sum(data, axes, keepdim))


@reduction("ReduceLogSumExp")
def _reduce_log_sum_exp(data: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    return tl.logsumexp(data, axes, keepdim)


def _extreme(function: Callable[..., Tensor], data: Tensor, axis: int, keepdims: int, select_last_index: int) -> Tensor:
    if not select_last_index:
        return function(data, axis, bool(keepdims))
    return data.shape[axis] - 1 - function(data.flip(axis), axis, bool(keepdims))


@operator("ArgMax", since=1)
def argmax(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    """Return the index of the first maximum along `axis`, or of the last."""
    return _extreme(tl.argmax, data, axis, keepdims, select_last_index)


@operator("ArgMin", since=1)
def argmin(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    """Return the index of the first minimum along `axis`, or of the last."""
    return _extreme(tl.argmin, data, axis, keepdims, select_last_index)


def _accumulate(
    function: Callable[..., Tensor], x: Tensor, axis: int, exclusive: int, reverse: int, start: int
) -> Tensor:
    """Apply a cumulative function along an axis: `exclusive` leaves out the element itself."""
    if reverse:
        x = x.flip(axis)
    if exclusive:
        length = x.shape[axis]
        first = tl.full_like(x.narrow(axis, 0, min(length, 1)), start)
        x = tl.cat([first, x.narrow(axis, 0, max(length - 1, 0))], axis)
    result = function(x, axis, dtype=x.dtype)
    return result.flip(axis) if reverse else result


@operator("CumSum", since=11)
def cumsum(x: Tensor, axis: Ints, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """Return cumulative sums; `exclusive` ones leave out the element itself, `reverse` ones begin at the end."""
    return _accumulate(tl.cumsum, x, ints(axis)[0], exclusive, reverse, 0)


@operator("CumProd", since=26)
def cumprod(x: Tensor, axis: Ints, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """Return cumulative products; see `cumsum`."""
    return _accumulate(tl.cumprod, x, ints(axis)[0], exclusive, reverse, 1)

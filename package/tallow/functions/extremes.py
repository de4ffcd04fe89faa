"""max, min, median and similar: one public name for several ops, chosen by the arguments, as in PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, overload

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.short_runtime import ABSENT  # PyTorch refuses None
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError
from tallow.ops.comparison import maximum, minimum
from tallow.ops.order_statistics import median_along, median_of_all, nanmedian_along, nanmedian_of_all
from tallow.ops.reduction import amax, amin
from tallow.ops.sorting import max_along, min_along, sort
from tallow.ops.table import Op

if TYPE_CHECKING:
    from tallow.signatures import results


class Overloads(NamedTuple):
    """The ops behind one public name."""

    of_all: Op
    along: Op
    pairwise: Op

    def __call__(self, input: Tensor, second: Any, keepdim: bool, other: Tensor | None) -> Any:
        if type(second) is int and other is ABSENT:  # the usual dim
            return self.along.call(input, second, keepdim)
        name = self.along.name.removesuffix("_along")
        if isinstance(second, Tensor) or other is not ABSENT:
            if second is not ABSENT and other is not ABSENT:
                raise ArgumentTypeError(f"{name}: got dim={second!r:.40} and other", hint="pass one of them")
            _refuse_keepdim(name, keepdim)
            return self.pairwise.call(input, second if other is ABSENT else other)
        if second is ABSENT:
            _refuse_keepdim(name, keepdim)
            return self.of_all.call(input)
        return self.along.call(input, second, keepdim)


def _refuse_keepdim(name: str, keepdim: bool) -> None:
    """Raise ArgumentTypeError for `keepdim` without a dim, which it could keep."""
    if keepdim:
        raise ArgumentTypeError(f"{name}: keepdim without dim", hint="pass dim, or leave keepdim out")


_max = Overloads(amax, max_along, maximum)
_min = Overloads(amin, min_along, minimum)


@overload
def max(input: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = ...) -> results.max: ...
@overload
def max(input: Tensor, dim: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, *, other: Tensor) -> Tensor: ...
@public("tl Tensor")
def max(input: Tensor, dim: int | Tensor = ABSENT, keepdim: bool = False, *, other: Tensor = ABSENT) -> Any:
    """Return the greatest element, in one of three ways.

    max(input)                  of all elements; elements that share the maximum share its gradient
    max(input, dim, keepdim)    along `dim`: (values, indices of the first maxima)
    max(input, other)           of each pair, broadcast
    """
    return _max(input, dim, keepdim, other)


@overload
def min(input: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = ...) -> results.min: ...
@overload
def min(input: Tensor, dim: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, *, other: Tensor) -> Tensor: ...
@public("tl Tensor")
def min(input: Tensor, dim: int | Tensor = ABSENT, keepdim: bool = False, *, other: Tensor = ABSENT) -> Any:
    """Return the least element, in one of three ways; see `max`."""
    return _min(input, dim, keepdim, other)


@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = ...) -> results.median: ...
@public("tl Tensor")
def median(input: Tensor, dim: int = ABSENT, keepdim: bool = False) -> Any:
    """Return the median of all elements, or along `dim` with its index. NaN if any element is NaN.

    Of an even number of elements it is the lower of the two in the middle.
    """
    if dim is ABSENT:
        _refuse_keepdim("median", keepdim)
        return apply(median_of_all, input)
    return apply(median_along, input, dim, keepdim)


@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = ...) -> results.nanmedian: ...
@public("tl Tensor")
def nanmedian(input: Tensor, dim: int = ABSENT, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN; see `median`."""
    if dim is ABSENT:
        _refuse_keepdim("nanmedian", keepdim)
        return apply(nanmedian_of_all, input)
    return apply(nanmedian_along, input, dim, keepdim)


@public("tl Tensor")
def msort(input: Tensor) -> Tensor:
    """Sort the elements along the first dimension, in ascending order."""
    values: Tensor = apply(sort, input, 0).values
    return values

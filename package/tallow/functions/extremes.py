"""max, min and their kin: one public name for several ops, told apart by the arguments, as PyTorch does it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallow.apply import apply
from tallow.offer import offer
from tallow.ops.table import OPS
from tallow.tensor import Tensor


class Overloads(NamedTuple):
    """The ops that one public name stands for."""

    whole: str
    along: str
    pairwise: str

    def __call__(self, input: Tensor, second: Any, keepdim: bool, other: Tensor | None) -> Any:
        other = second if isinstance(second, Tensor) else other
        if other is not None:
            return apply(OPS[self.pairwise], input, other)
        return apply(OPS[self.whole], input) if second is None else apply(OPS[self.along], input, second, keepdim)


_max = Overloads("amax", "max_along", "maximum")
_min = Overloads("amin", "min_along", "minimum")


@offer("tl Tensor")
def max(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The greatest element, in one of three ways.

    max(input)                  of all; elements that share the maximum share its gradient
    max(input, dim, keepdim)    along `dim`: (values, indices of the first ones)
    max(input, other)           of each pair, broadcast
    """
    return _max(input, dim, keepdim, other)


@offer("tl Tensor")
def min(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The least element, in one of three ways; see `max`."""
    return _min(input, dim, keepdim, other)


@offer("tl Tensor")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the two middle elements: of all, or along `dim` with its index. NaN if there is any."""
    return apply(OPS["median_of_all"], input) if dim is None else apply(OPS["median_along"], input, dim, keepdim)


@offer("tl Tensor")
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """As `median`, of the elements that are not NaN."""
    return apply(OPS["nanmedian_of_all"], input) if dim is None else apply(OPS["nanmedian_along"], input, dim, keepdim)


@offer("tl Tensor")
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension."""
    values: Tensor = apply(OPS["sort"], input, 0).values
    return values

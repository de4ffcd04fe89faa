"""max, min and their kin: one public name for several ops, told apart by the arguments, as PyTorch does it."""

from __future__ import annotations

from typing import Any

from tallow.apply import apply
from tallow.offer import offer
from tallow.ops.table import OPS
from tallow.tensor import Tensor


def _extreme(whole: str, along: str, pairwise: str, input: Tensor, second: Any, keepdim: bool, other: Tensor | None) -> Any:
    other = second if isinstance(second, Tensor) else other
    if other is not None:
        return apply(OPS[pairwise], input, other)
    return apply(OPS[whole], input) if second is None else apply(OPS[along], input, second, keepdim)


@offer("tl Tensor")
def max(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The greatest element, in one of three ways.

        max(input)                  of all; elements that share the maximum share its gradient
        max(input, dim, keepdim)    along `dim`: (values, indices of the first ones)
        max(input, other)           of each pair, broadcast
    """
    return _extreme("amax", "max_along", "maximum", input, dim, keepdim, other)


@offer("tl Tensor")
def min(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The least element, in one of three ways; see `max`."""
    return _extreme("amin", "min_along", "minimum", input, dim, keepdim, other)

"""Ops by others, which are differentiated in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tallow.autograd.graph import edge_to, place_of
from tallow.autograd.recorded.sweep import run_recorded
from tallow.core.tensor import Tensor


def defined(op: Callable[..., Tensor], operands: Sequence[Tensor], g: Tensor) -> list[Tensor | None]:
    """Return the gradients of op(*operands) for g, with a graph; the operands that are constants get None."""
    own = [x.view_as(x) if x.requires_grad else x for x in operands]  # each with a place of its own
    y = op(*own)
    places = [place_of(edge_to(x)) if x.requires_grad else None for x in own]
    arrived = run_recorded([(edge_to(y), g)], {place for place in places if place is not None})
    return [None if place is None or place not in arrived else arrived[place][1] for place in places]

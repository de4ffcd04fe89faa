"""Ops by others, which are differentiated in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow.autograd.second_order import run_derived
from tallow.autograd.variables import node_on
from tallow.core.tensor import Tensor, from_array
from tallow.dtypes import Array
from tallow.tape.graph import Edge, Node, Output, edge_to, place_of


def defined(op: Callable[..., Any], operands: Sequence[Tensor], *gs: Tensor) -> list[Tensor | None]:
    """Return the gradients of op(*operands), with a graph; the operands that are constants get None.

    Args:  op: returns a tensor, or as many as there are gs
    """
    own = [x.view_as(x) if x.requires_grad else x for x in operands]  # each with a place of its own
    result = op(*own)
    ys = result if isinstance(result, tuple) else (result,)
    roots = [(edge_to(y), g) for y, g in zip(ys, gs, strict=True) if y.requires_grad]
    places = [place_of(edge_to(x)) if x.requires_grad else None for x in own]
    _, found = run_derived(roots, {place for place in places if place is not None})
    return [None if place is None else found.get(place) for place in places]


def unread(edge: Edge | None, dtype: np.dtype[Any], shape: Sequence[int] = ()) -> Tensor:
    """Return the operand at an edge without its value, where nothing but its gradient is wanted.

    Args:  shape: of a constant
    """
    if edge is None:
        return from_array(np.zeros(shape, dtype))
    shape = edge.shape if isinstance(edge, Node | Output) else edge.array.shape
    return node_on(np.broadcast_to(np.zeros((), dtype), shape), "clone", lambda g: (g,), edge)


def formed(value: Array, edge: Edge | None, form: Callable[[Tensor], Tensor] = lambda x: x) -> Tensor:
    """Return form(operand), given its value, which a closure has saved, and the operand's edge."""
    return from_array(value) if edge is None else with_value(value, form(unread(edge, value.dtype)))


def with_value(value: Array, x: Tensor) -> Tensor:
    """Return x with its value, which a closure has saved."""
    return node_on(value, "clone", lambda g: (g,), edge_to(x))


def activated(name: str, value: Array, x: Tensor) -> Tensor:
    """Return sigmoid(x), tanh(x) or relu(x), given its value, which a closure has saved; that of x is not read."""
    closures: dict[str, Callable[[Array], tuple[Array]]] = {
        "sigmoid": lambda g: (g * (value * (1 - value)),),
        "tanh": lambda g: (g * (1 - value * value),),
        "relu": lambda g: (g * (value > 0),),
    }
    return node_on(value, name, closures[name], edge_to(x))

"""The table of rules, and what they are made of.

A rule takes the variables that a closure has saved, by their names, and the gradients of the op's outputs; it returns
those of the operands, as tensors with a history.

- For an op that is linear, such as `sum`, the closure is the adjoint, so only the op itself has to be written, for
  arrays: `linear`. `linear_map` records the closure as an op whose gradient is the op itself, and so on.
- Others have a formula, or a definition by other ops (definitions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow.autograd.graph import Edge, Node, edge_to, gradient_dtype
from tallow.autograd.recorded.saved import Gradients, Rule, Saved, connected
from tallow.core.tensor import Tensor, from_array
from tallow.dtypes import Array

RULES: dict[str, Rule] = {}  # by the name of the op
Map = Callable[[Array], Array]


def constant(value: Any) -> Tensor:
    """Return a saved array, or number of NumPy, as a tensor without a history."""
    return from_array(np.asarray(value) if isinstance(value, np.generic | np.ndarray) else value)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """File the decorated function as the rule of these ops."""

    def file(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return file


def node_on(array: Array, name: str, backward: Callable[[Array], tuple[Any, ...]], *edges: Edge | None) -> Tensor:
    """Return an array as the result of the op `name`, whose rule knows the variables of `backward`."""
    y = from_array(np.asarray(array) if isinstance(array, np.generic) else array)
    if any(edge is not None for edge in edges):
        y._node = Node(name, backward, list(edges), array.shape, gradient_dtype(array))
        y._requires_grad = True
    return y


def linear_map(g: Tensor, value: Map, adjoint: Map) -> Tensor:
    """Return value(g), whose gradient is `adjoint`: two linear functions of arrays."""
    maps, shape = (value, adjoint), g.array.shape
    return node_on(value(g.array), "linear_map", lambda h: (maps[1](h).reshape(shape),), edge_to(g))


@rule("linear_map")
def _map_again(saved: Saved, g: Tensor) -> Gradients:
    (value, adjoint), shape = saved.constant("maps"), saved.constant("shape")
    return [linear_map(g, lambda h: adjoint(h).reshape(shape), value)]


def product_map(maps: Sequence[Callable[[Array, Array], Array]], place: int, operands: Sequence[Tensor]) -> Tensor:
    """Return maps[place](*operands), a product in a form that is linear in each of three arrays.

    maps[i] returns the gradient of the form by array i, from the two others in their order: so the gradients of a
    product are products again.

    Args:  operands: the two others, without that at `place`
    """
    arrays = [x.array for x in operands]

    def closure(h: Array) -> tuple[Callable[[], Array], ...]:
        form: list[Array] = [*arrays[:place], h, *arrays[place:]]
        return tuple(lambda i=i: maps[i](*form[:i], *form[i + 1 :]) for i in range(3) if i != place)

    return node_on(maps[place](*arrays), "product_map", closure, *map(edge_to, operands))


@rule("product_map")
def _product_again(saved: Saved, g: Tensor) -> Gradients:
    maps, place, arrays = map(saved.constant, ("maps", "place", "arrays"))
    form = [connected(array, edge) for array, edge in zip(arrays, saved.node.edges, strict=True)]
    form.insert(place, g)
    return [product_map(maps, i, form[:i] + form[i + 1 :]) for i in range(3) if i != place]


def linear(*names: str) -> Callable[[Callable[[Saved], Map]], Callable[[Saved], Map]]:
    """File the rule of ops that are linear; the decorated function returns the op as a function of an array.

    Its result may have another shape with the same elements.
    """

    def file(function: Callable[[Saved], Map]) -> Callable[[Saved], Map]:
        def of(saved: Saved, g: Tensor, *others: Tensor) -> Gradients:
            return [linear_map(g, lambda h: saved.entry(0, h, *[None] * len(others)), function(saved))]

        rule(*names)(of)
        return function

    return file


def difference(array: Array, edges: Sequence[Any]) -> Tensor:
    """Return input - target, which a closure has saved, with its history."""
    return node_on(array, "sub", lambda g: (g, lambda: -g), *edges)

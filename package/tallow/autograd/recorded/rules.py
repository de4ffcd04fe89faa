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

from tallow.autograd.recorded.saved import Gradients, Rule, Saved
from tallow.autograd.variables import node_on
from tallow.core.tensor import Tensor, from_array
from tallow.dtypes import Array
from tallow.ops import maps

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


def linear_map(g: Tensor, value: Map, adjoint: Map) -> Tensor:
    """Return value(g), whose gradient is `adjoint`: two linear functions of arrays."""
    y: Tensor = maps.linear_map.call(g, value, adjoint)
    return y


def product_map(forms: Sequence[Callable[[Array, Array], Array]], place: int, operands: Sequence[Tensor]) -> Tensor:
    """Return forms[place](*operands), see tallow.ops.maps."""
    y: Tensor = maps.product_map.call(*operands, forms, place)
    return y


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

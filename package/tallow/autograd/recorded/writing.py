"""Rules of ops that write: each element of a gradient is zero, or one element of g times a constant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tallow.autograd.recorded.rules import RULES, linear_map, rule
from tallow.autograd.recorded.saved import Gradients, Saved, no_rule
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops.accumulate import add_at

# Names of the variables that closures save, by op. All follow from shapes and indices.
VARIABLES = {
    "copy": (),
    "diag_embed": ("offset", "dim1", "dim2"),
    "fill": (),
    "index_add": ("flat_shape", "dim", "places", "alpha", "source_shape"),
    "index_copy": ("shape", "dim", "places", "source_shape"),
    "index_fill": ("shape", "dim", "places"),
    "index_put": ("index", "accumulate"),
    "masked_scatter": ("mask", "by_source"),
    "max_unpool": ("flat", "indices"),
    "put": ("accumulate", "places", "shape", "source_shape"),
    "scatter": ("clear", "put_back", "places"),
    "scatter_add": ("dim", "put_back", "places", "shape"),
}


def _moved(saved: Saved, g: Tensor) -> Gradients:
    if _name_of(saved) == "index_fill" and saved.node.edges[1] is not None:
        raise no_rule(saved.node, "the value has a gradient")
    saved.ignore(*VARIABLES[_name_of(saved)])
    return by_elements(saved, g)


RULES.update(dict.fromkeys(VARIABLES, _moved))


@rule("scatter_reduce")
def _scatter_reduce(saved: Saved, g: Tensor) -> Gradients:
    if saved.constant("state").reduce == "prod":
        raise no_rule(saved.node, "a product")
    saved.ignore("shape", "put_back")
    return by_elements(saved, g)


def of_view_write(saved: Saved, g: Tensor) -> Gradients:
    """Return the gradients of an op that has written into a view: of the view's base, and of the other operands.

    The base's gradient is g, but the op's where the view lies.
    """
    name, others = _name_of(saved), saved.node.edges[1:]
    is_scaled = name in ("mul", "div") and all(edge is None for edge in others)
    if not is_scaled and name not in (*VARIABLES, "add", "sub"):
        raise no_rule(saved.node, "it has written into a view")
    saved.ignore("view", "layout", "backward")
    return by_elements(saved, g)


def _name_of(saved: Saved) -> str:
    return saved.node.op_name.removesuffix("_")


def by_elements(saved: Saved, g: Tensor) -> Gradients:
    """Return the closure's gradients, each element of which is one of g's times a constant, or zero.

    The closure itself tells which element, and which constant: it is called with the numbers of g's elements, and with
    ones.
    """
    xp, shape = array_module(g.array), g.shape
    numbers = saved.call(xp.arange(1, g.array.size + 1, dtype=np.float64).reshape(shape))
    weights = saved.call(xp.ones(shape))
    return [
        None
        if number is None or weight is None
        else linear_map(g, partial(saved.entry, i), _added(number, weight, shape))
        for i, (number, weight) in enumerate(zip(numbers, weights, strict=True))
    ]


def _added(numbers: Array, weights: Array, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return the adjoint: the sums, in an array of `shape`, of the elements that came from each of its elements."""
    xp = array_module(numbers)
    places = xp.rint(numbers / xp.where(weights == 0, 1, weights)).astype(np.int64).reshape(-1)
    factors = weights.reshape(-1)

    def adjoint(h: Array) -> Array:
        y = xp.zeros(1 + int(np.prod(shape)), h.dtype)
        add_at(y, (places,), h.reshape(-1) * factors.astype(h.dtype))
        return y[1:].reshape(shape)

    return adjoint

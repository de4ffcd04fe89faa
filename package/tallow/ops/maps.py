"""Ops that are given as functions of arrays, by which rules of the second order express gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.table import Array, Index, Result, op

Map = Callable[[Array], Array]
Product = Callable[[Array, Array], Array]


@op("", dtypes="promote", batched="itself")
def linear_map(input: Array, forward: Map, transpose: Map) -> Result:
    """Return forward(input), whose gradient is `transpose`, and the other way round: two linear functions of arrays.

    A function may return its result in another shape with the same elements.
    """
    maps, shape = (forward, transpose), input.shape
    return forward(input), lambda g: (maps[1](g).reshape(shape),)


@linear_map.second
def _(g: Derived, *, maps: tuple[Map, Map], shape: tuple[int, ...]) -> Gradients:
    forward, transpose = maps
    return [linear_map.call(g, lambda h: transpose(h).reshape(shape), forward)]


@op("", dtypes="keep", batched="itself")
def adjoint_map(input: Array, forward: Map, adjoint: Map) -> Result:
    """Return forward(input), whose gradient is `adjoint`, and the other way round: two real-linear functions of arrays.

    One of them has complex numbers, such as those of `tallow.ops.complex_rules.OWN`.
    """
    maps, shape = (forward, adjoint), input.shape
    return forward(input), lambda g: (maps[1](g).reshape(shape),)


@adjoint_map.second
def _(g: Derived, *, maps: tuple[Map, Map], shape: tuple[int, ...]) -> Gradients:
    forward, adjoint = maps
    return [adjoint_map.call(g, lambda h: adjoint(h).reshape(shape), forward)]


@op("", dtypes="promote", reads_per_operand=False, batched="itself")
def product_map(input: Array, other: Array, maps: Sequence[Product], place: int) -> Result:
    """Return maps[place](input, other), a product in a form that is linear in each of three arrays.

    maps[i] returns the gradient of the form by array i, from the two others in their order: so the gradients of a
    product are products again. The operands are the two arrays other than that at `place`.
    """

    def backward(g: Array) -> tuple[Any, ...]:
        form = [input, other]
        form.insert(place, g)
        return tuple(lambda i=i: maps[i](*form[:i], *form[i + 1 :]) for i in range(3) if i != place)

    return maps[place](input, other), backward


@product_map.second
def _(g: Derived, *, input: Derived, other: Derived, maps: Sequence[Product], place: int) -> Gradients:
    form = [input, other]
    form.insert(place, g)
    return [product_map.call(*form[:i], *form[i + 1 :], maps, i) for i in range(3) if i != place]


@op("", dtypes="keep", batched="itself")
def with_value(input: Array, known: Index, slope: Map | None = None) -> Result:
    """Return `known` as the result of a function of `input` whose derivative is slope(known), or 1.

    So `with_value(x, y, lambda y: 1 - y * y)` is tanh(x) where a closure has saved y, and x has no elements.
    """
    value = known[...]
    return value, lambda g: (g if slope is None else g * slope(value),)


@with_value.second
def _(g: Derived, *, value: Derived, slope: Map | None) -> Gradients:
    return [g if slope is None else g * slope(value)]


def known_difference(a: Unread, b: Unread, known: Derived) -> Derived:
    """Return `known`, which is a - b where a closure has saved that, with their histories; None for a constant."""
    if a is None:
        return known if b is None else with_value.call(-b, known)
    return with_value.call(a if b is None else a - b, known)

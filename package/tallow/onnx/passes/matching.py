"""Find patterns in a graph, written as expressions.

    x = Var("x")
    GELU = x * (call("erf", x / number(2**0.5)) + number(1)) * number(0.5)
    for found in matches(GELU, node): found["x"]

Sums and products match in both orders. A variable that occurs twice is one node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tallow.fx.graph_module import GraphModule
from tallow.fx.names import candidate_for
from tallow.fx.node import Node
from tallow.nn.parameter import Parameter
from tallow.onnx.examples import known_dtype, known_shape

ALIASES = {"truediv": "div", "power": "pow", "multiply": "mul", "subtract": "sub", "divide": "div"}
COMMUTE = ("add", "mul")
CLOSE = 1e-4  # relative: exporters round constants, some to half precision

Bound = dict[str, Any]
SHARED = "shared"  # in `meta` of a module while passes run: ids of tensors that other graphs read too


class Pattern:
    """A part of a pattern. Operators of Python make larger ones."""

    def __add__(self, other: Pattern) -> Pattern:
        return call("add", self, other)

    def __sub__(self, other: Pattern) -> Pattern:
        return call("sub", self, other)

    def __mul__(self, other: Pattern) -> Pattern:
        return call("mul", self, other)

    def __truediv__(self, other: Pattern) -> Pattern:
        return call("div", self, other)

    def __pow__(self, other: Pattern) -> Pattern:
        return call("pow", self, other)

    def __or__(self, other: Pattern) -> Pattern:
        return Either((self, other))


@dataclass(frozen=True)
class Var(Pattern):
    """Any node, under a name; `accepts` may refuse it."""

    name: str
    accepts: Callable[[Any], bool] = lambda value: isinstance(value, Node)


@dataclass(frozen=True)
class Number(Pattern):
    """A number close to a value."""

    value: float


@dataclass(frozen=True)
class Call(Pattern):
    """A call of a function or method by its name, with these arguments first; others are free."""

    name: str
    args: tuple[Pattern, ...]


@dataclass(frozen=True)
class Either(Pattern):
    """One of several patterns."""

    options: tuple[Pattern, ...]


def call(name: str, *args: Pattern) -> Call:
    """Return the pattern of a call."""
    return Call(name, args)


def number(value: float) -> Number:
    """Return the pattern of a number."""
    return Number(value)


def a_number(name: str) -> Var:
    """Return the pattern of any number, under a name."""
    return Var(name, lambda value: isinstance(value, int | float))


def anything(name: str) -> Var:
    """Return the pattern of any argument, under a name."""
    return Var(name, lambda value: True)


def name_of(value: Any) -> str:
    """Return the name of the function or method that a node calls; empty for other nodes and values."""
    if not isinstance(value, Node) or value.op not in ("call_function", "call_method"):
        return ""
    return _name_of_target(value.target)


@lru_cache(1024)
def _name_of_target(target: Any) -> str:
    name = candidate_for(target)
    return ALIASES.get(name, name)


def arguments(node: Node) -> tuple[Any, ...]:
    """Return the arguments of a node in order, those by keyword last."""
    return (*node.args, *node.kwargs.values())


def matches(pattern: Pattern, value: Any, bound: Bound | None = None) -> Iterator[Bound]:
    """Yield the variables of each way in which a pattern matches a node."""
    bound = bound or {}
    if isinstance(pattern, Either):
        for option in pattern.options:
            yield from matches(option, value, bound)
    elif isinstance(pattern, Number):
        if isinstance(value, int | float) and math.isclose(value, pattern.value, rel_tol=CLOSE):
            yield bound
    elif isinstance(pattern, Var):
        if pattern.name in bound:
            if bound[pattern.name] is value or bound[pattern.name] == value:
                yield bound
        elif pattern.accepts(value):
            yield {**bound, pattern.name: value}
    elif isinstance(pattern, Call) and name_of(value) == pattern.name:
        args = arguments(value)
        if len(args) >= len(pattern.args):
            yield from _all(pattern.args, args, bound)
            if pattern.name in COMMUTE and len(args) == 2:
                yield from _all(pattern.args, args[::-1], bound)


def _all(patterns: tuple[Pattern, ...], values: tuple[Any, ...], bound: Bound) -> Iterator[Bound]:
    if not patterns:
        yield bound
        return
    for found in matches(patterns[0], values[0], bound):
        yield from _all(patterns[1:], values[1:], found)


Build = Callable[[GraphModule, Node, Bound], Node | None]


def rewrite(module: GraphModule, pattern: Pattern, build: Build) -> int:
    """Replace each node that a pattern matches by what `build` makes before it, unless that is None.

    Returns: how many were replaced
    """
    count = 0
    for node in module.graph.nodes:
        for found in matches(pattern, node):
            with module.graph.inserting_before(node):
                new = build(module, node, found)
            if new is not None:
                new.meta = dict(node.meta)
                node.replace_all_uses_with(new)
                count += 1
                break
    if count:
        module.graph.eliminate_dead_code()
    return count


def is_own(module: GraphModule, held: object) -> bool:
    """Return whether a tensor is a weight that no other graph reads, so that a pass may replace it."""
    return isinstance(held, Parameter) and id(held) not in module.meta.get(SHARED, ())


def shape_of(value: Any) -> tuple[int | None, ...] | None:
    """Return the sizes of a node's dims, None for those that inputs decide; None if nothing is known."""
    return known_shape(value.meta.get("example")) if isinstance(value, Node) else None


def dtype_of(value: Any) -> Any:
    """Return the dtype of a node, or None."""
    return known_dtype(value.meta.get("example")) if isinstance(value, Node) else None


def is_result(node: Node) -> bool:
    """Return whether the graph returns what a node makes, which a program may then change in place."""
    return any(user.op == "output" for user in node.users)


def is_last_dim(dims: Any, of: Any) -> bool:
    """Return whether the dims of a reduction are the last one alone."""
    dims = tuple(dims) if isinstance(dims, list | tuple) else (dims,)
    if len(dims) != 1 or not isinstance(dims[0], int):
        return False
    shape = shape_of(of)
    return dims[0] == -1 or (shape is not None and dims[0] == len(shape) - 1)

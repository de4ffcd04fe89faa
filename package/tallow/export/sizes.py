"""Numbers that depend on a declared size: integers and floats that remember how they were computed.

A recorded program runs at the sizes of the example. Where it asks a tensor for a size that is declared to vary, it
gets a `SymInt`: an int with the example's value, which works wherever an int does. It also has the value at another
size, and knows its source. Arithmetic makes further ones. Where one becomes an argument of an op, the graph computes it
by nodes.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallow.core.overrides import is_array_code
from tallow.core.tensor import Tensor
from tallow.errors import TraceError
from tallow.fx.node import Node
from tallow.fx.patching import has_side_effect
from tallow.tape.modes import mode

if TYPE_CHECKING:
    from tallow.export.recorder import Recorder

INSIDE = ("tallow.export.", "tallow.fx.compile.recorder", "contextlib", "functools")  # modules that no message names


def sym_size(input: Tensor, dim: int) -> int:
    """Return the size of a dim."""
    size: int = input.array.shape[dim]
    return size


def caller_of_sizes() -> str:
    """Return what compares a size: "ops" for array code, "functions" for what is composed of ops, "" for a program."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        frame = frame.f_back
    if frame is None or not is_array_code(frame):
        return ""
    return "functions" if frame.f_globals["__name__"].startswith("tallow.functions.") else "ops"


@has_side_effect
def check_size(condition: bool, expected: bool, reason: str) -> None:
    """Raise TraceError unless sizes let the program go the way that was recorded."""
    if condition is not expected:
        raise TraceError(f"this size was not exported: {reason} was {expected}")


class Symbolic:
    """A number or a tuple that depends on a declared size.

    Attributes:
        first, second: the values at the sizes of the example, and at the others.
        recorder: the recorder that made it. It is an ordinary number once the recording is over.
        make: adds the node that computes it.
    """

    first: Any
    second: Any
    recorder: Recorder
    make: Callable[[], Node]
    _node: Node | None = None

    def node(self) -> Node:
        """Return the node that computes the number."""
        if self._node is None:
            self._node = self.make()
        return self._node

    def __bool__(self) -> bool:
        return bool(_compared(operator.ne, self, 0))

    def __index__(self) -> Any:
        return self

    def __divmod__(self, other: Any) -> Any:
        return operator.floordiv(self, other), operator.mod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return operator.floordiv(other, self), operator.mod(other, self)

    def _needed(self) -> Any:
        if mode.tracer is not self.recorder or caller_of_sizes() == "ops":
            return self.first
        raise TraceError(
            f"a size that may vary is converted to one number here{self.recorder.place()}",
            hint="compute with it by + - * // % **, math.floor or math.ceil, or do not declare its Dim",
        )

    def __int__(self) -> int:
        return int(self._needed())

    def __float__(self) -> float:
        return float(self._needed())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self.first), (self.first,)

    def __copy__(self) -> Any:
        return self.first

    def __deepcopy__(self, memo: Any) -> Any:
        return self.first


class SymInt(Symbolic, int):
    """An integer that depends on a declared size."""

    __hash__ = int.__hash__


class SymFloat(Symbolic, float):
    """A float that depends on a declared size."""

    __hash__ = float.__hash__


class SymTuple(Symbolic, tuple):  # type: ignore[type-arg]
    """A tuple whose length is a SymInt: `(n,) * steps`."""

    __slots__ = ()
    __hash__ = tuple.__hash__
    __eq__, __ne__ = tuple.__eq__, tuple.__ne__
    __add__ = tuple.__add__

    def __bool__(self) -> bool:
        return len(self) > 0


def symbolic(recorder: Recorder, first: Any, second: Any, make: Callable[[], Node]) -> Any:
    """Return a number with two values."""
    result: Any = {int: SymInt, float: SymFloat, tuple: SymTuple}[type(first)](first)
    result.first, result.second, result.recorder, result.make = first, second, recorder, make
    return result


def first_of(x: Any) -> Any:
    """Return a number at the sizes of the example."""
    if isinstance(x, Symbolic):
        return x.first
    return tuple(map(first_of, x)) if isinstance(x, tuple) else x


def second_of(x: Any) -> Any:
    """Return a number at the other sizes."""
    if isinstance(x, Symbolic):
        return x.second
    return tuple(map(second_of, x)) if isinstance(x, tuple) else x


def _computed(function: Callable[..., Any], *operands: Any) -> Any:
    first = function(*map(first_of, operands))
    recorder = next(x.recorder for x in operands if isinstance(x, Symbolic))
    if mode.tracer is not recorder or type(first) not in (int, float, tuple):
        return first
    second = function(*map(second_of, operands))

    def make() -> Node:
        return recorder.graph.call_function(function, tuple(map(recorder.argument, operands)))

    return symbolic(recorder, first, second, make)


def _compared(function: Callable[..., Any], left: Any, right: Any) -> Any:
    first = function(first_of(left), first_of(right))
    recorder = next(x.recorder for x in (left, right) if isinstance(x, Symbolic))
    if mode.tracer is recorder:
        recorder.decide(function, left, right, first, function(second_of(left), second_of(right)))
    return first


def _define() -> None:
    def binary(name: str) -> None:
        function = getattr(operator, name)

        def forward(self: Any, other: Any) -> Any:
            return _computed(function, self, other) if isinstance(other, int | float) else NotImplemented

        def reflected(self: Any, other: Any) -> Any:
            is_operand = isinstance(other, int | float) or (name == "mul" and type(other) is tuple)
            return _computed(function, other, self) if is_operand else NotImplemented

        setattr(Symbolic, f"__{name.rstrip('_')}__", forward)
        setattr(Symbolic, f"__r{name.rstrip('_')}__", reflected)

    def comparison(name: str) -> None:
        function = getattr(operator, name)

        def compare(self: Any, other: Any) -> Any:
            return _compared(function, self, other) if isinstance(other, int | float) else NotImplemented

        setattr(Symbolic, f"__{name}__", compare)

    def unary(name: str, function: Callable[..., Any]) -> None:
        setattr(Symbolic, f"__{name}__", lambda self, *args: _computed(function, self, *args))

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
        binary(name)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        comparison(name)
    for name in ("neg", "pos", "abs", "invert"):
        unary(name, getattr(operator, name))
    for name, function in (("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc), ("round", round)):
        unary(name, function)


_define()

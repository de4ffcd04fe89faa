"""Exporters of arithmetic with sizes that vary: numbers without dims, of int64; float64 after a division."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports


@dataclass(frozen=True)
class Repeated:
    """A tuple whose length varies: `items * count`."""

    items: tuple[Any, ...]
    count: Any


@exports("export.sizes.sym_size")
def _(g: Builder, input: Value, dim: int) -> Any:
    return g.size(input, dim)


@exports("export.sizes.check_size")
def _(g: Builder, condition: Any, expected: bool, reason: str) -> None:
    """Leave out the check: ONNX has no operator that stops a run."""


def _numbers(g: Builder, *numbers: Any) -> list[Value]:
    """Return numbers as values of one dtype."""
    is_float = any(isinstance(n, float) or (isinstance(n, Value) and n.dtype is not dtypes.int64) for n in numbers)
    like = Value("", dtypes.float64 if is_float else dtypes.int64)
    return [g.scalar(n, like) for n in numbers]


def _binary(operator: str) -> Any:
    def exporter(g: Builder, a: Any, b: Any) -> Value:
        if isinstance(a, tuple) or isinstance(b, tuple):
            raise UnsupportedError("a tuple whose length varies")
        made: Value = g.op(operator, *_numbers(g, a, b), shape=())
        return made

    return exporter


_OPERATORS = {"add": "Add", "sub": "Sub", "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater"}
_OPERATORS |= {"ge": "GreaterOrEqual"}
for _name, _operator in _OPERATORS.items():
    exports(f"_operator.{_name}")(_binary(_operator))


@exports("_operator.mul")
def _(g: Builder, a: Any, b: Any) -> Any:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return Repeated(a, b) if isinstance(a, tuple) else Repeated(b, a)
    return g.op("Mul", *_numbers(g, a, b), shape=())


@exports("_operator.ne")
def _(g: Builder, a: Any, b: Any) -> Value:
    return g.op("Not", g.op("Equal", *_numbers(g, a, b), shape=()), shape=())


@exports("_operator.truediv")
def _(g: Builder, a: Any, b: Any) -> Value:
    like = Value("", dtypes.float64)
    return g.op("Div", g.scalar(a, like), g.scalar(b, like), shape=())


@exports("_operator.floordiv")
def _(g: Builder, a: Any, b: Any) -> Value:
    a, b = _numbers(g, a, b)
    if a.dtype is dtypes.float64:
        return g.op("Floor", g.op("Div", a, b, shape=()), shape=())
    return g.op("Div", g.op("Sub", a, g.op("Mod", a, b, shape=()), shape=()), b, shape=())


@exports("_operator.mod")
def _(g: Builder, a: Any, b: Any) -> Value:
    return g.op("Mod", *_numbers(g, a, b), shape=())


@exports("_operator.pow")
def _(g: Builder, a: Any, b: Any) -> Value:
    return g.op("Pow", *_numbers(g, a, b), shape=())


@exports("_operator.neg")
def _(g: Builder, a: Any) -> Value:
    return g.op("Neg", a, shape=())


@exports("_operator.pos")
def _(g: Builder, a: Any) -> Value:
    return a


@exports("_operator.abs")
def _(g: Builder, a: Any) -> Value:
    return g.op("Abs", a, shape=())


def _rounded(operator: str) -> Any:
    def exporter(g: Builder, a: Value) -> Value:
        return a if a.dtype is dtypes.int64 else g.cast(g.op(operator, a, shape=()), dtypes.int64)

    return exporter


for _name, _operator in {"math.floor": "Floor", "math.ceil": "Ceil", "builtins.round": "Round"}.items():
    exports(_name)(_rounded(_operator))


@exports("math.trunc")
def _(g: Builder, a: Value) -> Value:
    return g.cast(a, dtypes.int64)

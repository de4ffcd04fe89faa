"""The table of exporters: how each function of an exported graph becomes operators of ONNX.

An exporter is a function of a `Builder` and of the arguments that the op has, by their names. An operand is a `Value`;
a number at an operand is a `Value` as well, with the operands' common dtype. A size that varies is a `Value` of int64
among the numbers of a shape. It returns a `Value`, or a tuple of them:

    @exports("softsign")
    def softsign(g: Builder, input: Value) -> Value:
        return g.op("Softsign", input)

The name is that of the op in the table of ops. Functions that are recorded as a whole, and Python's operators on sizes,
have the name by which they are found, without "tallow.": "arange", "nn.functional.interpolate", "_operator.add".
An argument that an exporter does not have must be left at its default; another value is refused by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from tallow.errors import UnsupportedError
from tallow.export.targets import op_target
from tallow.fx.names import qualified_name
from tallow.ops.table import OPS, Op

Exporter = Callable[..., Any]
F = TypeVar("F", bound=Exporter)
EXPORTERS: dict[str, Exporter] = {}
# Arguments that do not change what is computed, or that show in the result: its dtype, the number of its parts.
# `recorded` says whether a backward pass will follow.
_NEUTRAL = """
assume_unique chunks compute_mode copy device driver dtype indices_or_sections inplace layout memory_format
non_blocking out_int32 padding_idx pin_memory recorded requires_grad scale_grad_by_freq sparse sparse_grad stable
"""
NEUTRAL = frozenset(_NEUTRAL.split())


def exports(*names: str) -> Callable[[F], F]:
    """Register a function as the exporter of the ops or functions with these names."""

    def register(function: F) -> F:
        for name in names:
            EXPORTERS[name] = function
        return function

    return register


@cache
def _ops_by_target() -> dict[Any, Op]:
    return {op_target(op): op for op in OPS.values()}


def op_of(target: Any) -> Op | None:
    """Return the op that a node calls; None for any other function."""
    return _ops_by_target().get(target)


def name_of(target: Any) -> str:
    """Return the name under which the exporter of a node's target is registered."""
    op = op_of(target)
    if op is not None:
        return op.name
    name = qualified_name(target)
    return name.removeprefix("tallow.") if "." in name else f"builtins.{name}"


@cache
def _parameters(exporter: Exporter) -> tuple[str, ...]:
    return tuple(inspect.signature(exporter).parameters)[1:]


def bound(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of the parameters, without those that are absent."""
    op = op_of(target)
    if op is not None:
        values, named = op.bind(args, kwargs)
        return dict(zip(op.names, values, strict=False)) | named
    try:
        signature = inspect.signature(inspect.unwrap(target))
    except ValueError:  # a builtin, such as operator.add
        return {f"_{i}": x for i, x in enumerate(args)} | kwargs
    return dict(signature.bind(*args, **kwargs).arguments)


def defaults(target: Any) -> dict[str, Any]:
    """Return the default of each parameter of a node's target."""
    op = op_of(target)
    if op is not None:
        return op.all_defaults
    try:
        signature = inspect.signature(inspect.unwrap(target))
    except ValueError:
        return {}
    return {p.name: p.default for p in signature.parameters.values()}


def accepted(exporter: Exporter, target: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that an exporter has.  Raises: UnsupportedError for another that has an effect"""
    own, default = _parameters(exporter), defaults(target)
    for name, value in arguments.items():
        if name not in own and name not in NEUTRAL and not name.startswith("_") and value is not default.get(name):
            if value is None or value == default.get(name):
                continue
            raise UnsupportedError(f"{name}={value!r:.60} has no form in ONNX")
    positional = [value for name, value in arguments.items() if name.startswith("_")]
    return dict(zip(own, positional, strict=False)) | {k: v for k, v in arguments.items() if k in own}

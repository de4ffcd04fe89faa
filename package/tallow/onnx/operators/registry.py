"""The table of ONNX operators: `@operator("Gemm", since=7)` files a function under its domain, name and opset."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError

F = TypeVar("F", bound=Callable[..., Any])
INTS = "whole numbers"
# The annotation of an operand that must be known to build the graph: a tuple of Python ints where it is known when the
# file is loaded, otherwise an int64 Tensor. `ints` reads both.
Ints = Annotated[tuple[int, ...] | Tensor, INTS]
# The annotation of an operand that is no weight, though it holds floats: statistics, scales of codes, sizes.
State = Annotated[Tensor, "state"]


@dataclass(frozen=True)
class Operator:
    """One meaning of an operator.

    Attributes:
        function: takes operands by position, attributes by keyword.
        since, until: the first and the last opset with this meaning; until is None for the newest.
        whole: the graph calls the function itself, which reads values or shapes when it runs. Otherwise the builder
            calls it on proxies, and the graph holds the functions that it calls.
        operands: the names of the operands.
        required: the operands that must be there: they have no default, and their annotation does not allow None.
        ints: the names of the operands annotated `Ints`.
        states: the names of the operands annotated `State`, which are not trained.
        variadic: whether any number of operands may follow.
        attributes: the names of the attributes.
        required_attributes: those without a default.
        takes_outputs: whether the function has the keyword `outputs`, the number of outputs asked for.
        takes_max_trips: whether it has the keyword `max_trips`, the most iterations that the caller of `load` allows.
        takes_narrow_type: whether it has the keyword `narrow_type`: the element type of the last operand if it is
            narrower than a byte, which its tensor does not tell, else 0.
        returns_tuple: whether its annotation says that it returns a tuple, of however many outputs.
        folds: whether known operands make the result known when the file is loaded.
    """

    domain: str
    name: str
    function: Callable[..., Any]
    since: int
    until: int | None
    whole: bool
    operands: tuple[str, ...]
    required: frozenset[str]
    ints: frozenset[str]
    states: frozenset[str]
    variadic: bool
    attributes: frozenset[str]
    required_attributes: frozenset[str]
    takes_outputs: bool
    takes_max_trips: bool
    takes_narrow_type: bool
    returns_tuple: bool
    folds: bool


INTS_NAME, STATE_NAME = "Ints", "State"
GIVEN = ("outputs", "max_trips", "narrow_type")  # keywords that are no attributes

_TABLE: dict[tuple[str, str], list[Operator]] = {}


def operator(
    name: str, *, since: int = 1, until: int | None = None, domain: str = "", whole: bool = False, folds: bool = True
) -> Callable[[F], F]:
    """File a function as an operator.

    Args:
        since, until: the opsets that give the operator this meaning.
        domain: empty for ai.onnx.
        whole, folds: see `Operator`. Operators of random numbers, and those whose result has no bound by the size of
            their operands, do not fold.

    Positional parameters are the operands, those with a default are optional, `*args` takes any number. Keyword-only
    parameters are the attributes, named as in ONNX; `outputs` is the number of outputs asked for.
    """

    def file(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        operands = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in GIVEN]
        entry = Operator(
            domain,
            name,
            function,
            since,
            until,
            whole,
            tuple(p.name for p in operands),
            frozenset(p.name for p in operands if p.default is p.empty and "None" not in str(p.annotation)),
            frozenset(p.name for p in operands if _is(INTS_NAME, p.annotation)),
            frozenset(p.name for p in operands if _is(STATE_NAME, p.annotation)),
            any(p.kind is p.VAR_POSITIONAL for p in parameters),
            frozenset(p.name for p in keywords),
            frozenset(p.name for p in keywords if p.default is p.empty),
            any(p.name == "outputs" for p in parameters),
            any(p.name == "max_trips" for p in parameters),
            any(p.name == "narrow_type" for p in parameters),
            str(inspect.signature(function).return_annotation).startswith("tuple"),
            folds,
        )
        _TABLE.setdefault((domain, name), []).append(entry)
        return function

    return file


def _is(name: str, annotation: Any) -> bool:
    """Return whether an annotation is a name, or `name | None`; modules here postpone annotations, so it is text."""
    return name in str(annotation).replace("|", " ").split()


def find_operator(domain: str, name: str, opset: int) -> Operator | None:
    """Return the meaning of an operator in an opset of its domain, or None."""
    domain = "" if domain == "ai.onnx" else domain
    fitting = [
        entry
        for entry in _TABLE.get((domain, name), [])
        if entry.since <= opset and (entry.until is None or opset <= entry.until)
    ]
    return max(fitting, key=lambda entry: entry.since, default=None)


def all_operators() -> list[Operator]:
    """Return all meanings of all operators."""
    return [entry for entries in _TABLE.values() for entry in entries]


def ints(value: Ints | None) -> tuple[int, ...]:
    """Return an operand annotated `Ints` as a tuple of Python ints; None as an empty one."""
    if value is None:
        return ()
    if isinstance(value, tuple):
        return value
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(f"expected an int64 tensor or a tuple of ints, got {type(value).__name__}")
    return tuple(int(each) for each in value.reshape(-1).tolist())

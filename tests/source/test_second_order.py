"""Rules of the second order know the variables of their ops' closures, read from the compiled code of every op.

A rule that lacks a variable raises at its first use, see tests/unit/autograd/test_second_order.py. Here are also the
closures that no case reaches, and the variables that rules name but no closure has any more.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from tallow.ops.table import OPS, Op

BUILT_IN = {name: op for name, op in OPS.items() if op.function.__module__.startswith("tallow.ops.")}
WITH_RULE = {name: op for name, op in BUILT_IN.items() if op.rule is not None}
RETURN_CLOSURES = ("Result", "Callable", "Products")
COMPREHENSIONS = {"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"}
# Variables of closures that no gradient goes through: for integers; and of functions that are no closures for backward.
ELSEWHERE = {
    "adaptive_max_pool": {"out"},
    "linalg_det": {"orientation", "s", "u", "vt"},
    "max_pool_with_indices": {"axes"},
    "nanmean": {"axes", "shape"},
    "nansum": {"axes", "shape"},
}


def helpers(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the function of an op and those functions of its package that make closures for it."""
    waiting, seen = [function], {function}
    while waiting:
        yield (current := waiting.pop())
        for name in names_in(current.__code__):
            for value in _parts(current.__globals__.get(name)):
                if isinstance(value, FunctionType) and makes_closures(value) and value not in seen:
                    seen.add(value)
                    waiting.append(value)


def makes_closures(function: FunctionType) -> bool:
    """Return whether a function of the ops' modules is annotated as one that returns a value and its closure."""
    returned = str(function.__annotations__.get("return"))
    return function.__module__.startswith("tallow.ops.") and any(word in returned for word in RETURN_CLOSURES)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, ModuleType):
        return []
    return [value.function] if isinstance(value, Op) else [value]


def names_in(code: CodeType) -> set[str]:
    """Return the global names that a function and those inside it read."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*(names_in(c) for c in code.co_consts if isinstance(c, CodeType)))


def closures(function: FunctionType) -> Iterator[CodeType]:
    """Yield the functions that a function makes, outermost ones alone."""
    for constant in function.__code__.co_consts:
        if isinstance(constant, CodeType) and constant.co_name not in COMPREHENSIONS and constant.co_freevars:
            yield constant


def variables(op: Op) -> set[str]:
    """Return the variables that an op's closures may have, but for those that hold other closures of the op."""
    found: set[str] = set()
    for helper in helpers(op.function):  # type: ignore[arg-type]
        inner = {c.co_name for c in helper.__code__.co_consts if isinstance(c, CodeType)}
        for code in closures(helper):
            found |= set(code.co_freevars) - inner
    return {name for name in found - {"xp"} if not name.startswith("backward")}


@pytest.mark.parametrize("name", WITH_RULE)
def test_a_rule_names_variables_that_closures_have(name: str) -> None:
    op = WITH_RULE[name]
    assert op.rule is not None
    own = variables(op)
    for variable, annotation, _ in op.rule.parameters():
        assert annotation.startswith("Unread") or variable in own, variable
    assert op.rule.unneeded <= own
    assert op.rule.names.keys() <= {variable for variable, _, _ in op.rule.parameters()}
    assert {held for held in op.rule.names.values() if not held.startswith("value")} <= op.all_defaults.keys()


@pytest.mark.parametrize("name", WITH_RULE)
def test_a_rule_knows_every_variable(name: str) -> None:
    op = WITH_RULE[name]
    assert op.rule is not None
    if op.rule.form in ("piecewise", "moves"):  # the closure itself computes
        return
    known = {variable for variable, _, _ in op.rule.parameters()} | op.rule.unneeded
    assert not variables(op) - known - ELSEWHERE.get(name, set())


def test_what_the_checks_find() -> None:
    def function(input: Any, dim: int) -> tuple[Any, Callable[..., Any]]:
        size = input.shape[dim]
        return input, lambda g: (g * size + sum(g[i] * dim for i in range(3)),)

    function.__module__ = "tallow.ops.made_up"
    assert {c.co_freevars for c in closures(function)} == {("dim", "size")}

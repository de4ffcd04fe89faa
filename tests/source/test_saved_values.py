"""Ops keep the promise `reads_per_operand`: a wrong one would make a gradient silently wrong.

The engine lets an array be overwritten if only functions for gradients that are not needed read it. That holds only if
`backward` itself does not read it too. Nothing checks this at run time; here the compiled code of every op is read.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest
from support.paths import ROOT

from tallow.ops.table import OPS

MODULES = sorted((ROOT / "package" / "tallow" / "ops").glob("*.py"))
# Numbers, truth values, names, functions and modules, which cannot be overwritten in place.
NOT_ARRAYS = {"H", "R", "a_ndim", "axis", "b_ndim", "dim", "enter", "is_batch", "name", "shape", "weight_count", "xp"}
SINGLE_OPERAND = {"logcumsumexp"}  # its gradient is always needed


def functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from functions(constant)


def read_twice(code: CodeType) -> set[str]:
    """The free variables that a function reads itself, and hands to a function that it makes."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname.startswith("LOAD_DEREF")}
    inner = {name for each in code.co_consts if isinstance(each, CodeType) for name in each.co_freevars}
    return own & inner & set(code.co_freevars)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_saved_array_is_read_outside_of_the_functions_for_single_operands(path: Path) -> None:
    undeclared = []
    for function in functions(compile(path.read_text(encoding="utf-8"), str(path), "exec")):
        op = function.co_qualname.partition(".")[0].lstrip("_")
        declared = op in OPS and not OPS[op].reads_per_operand
        arrays = read_twice(function) - NOT_ARRAYS
        if arrays and not declared and op not in SINGLE_OPERAND:
            undeclared.append(f"{function.co_qualname}: {sorted(arrays)}")
    assert not undeclared, "pass reads_per_operand=False to @op, or read them in one place"


def test_what_the_check_finds() -> None:
    code = compile(
        "def op(a, b):\n def backward(g):\n  t = g * a\n  return lambda: t * b, lambda: t * a\n", "op", "exec"
    )
    found = [read_twice(function) for function in functions(code)]
    assert {"a"} in found
    assert {"b"} not in found

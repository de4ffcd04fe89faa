"""The package's files and functions are short enough to be read."""

from __future__ import annotations

import ast

import pytest
from support.package_modules import MODULES, PACKAGE

MAX_LINES, MAX_FUNCTION = 500, 88
# One class each, PyTorch's Tensor and the functions that make one.
LONG_FILES = {"core/tensor.py", "core/creation.py"}


def test_few_files_are_long() -> None:
    lines = {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in MODULES.values()
    }
    assert {name for name, count in lines.items() if count > MAX_LINES} <= LONG_FILES


@pytest.mark.parametrize("module", MODULES)
def test_no_function_is_long(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [node.name for node in functions if node.end_lineno and node.end_lineno - node.lineno >= MAX_FUNCTION]
    assert not long

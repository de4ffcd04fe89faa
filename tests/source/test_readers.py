"""Readers open files by `tallow.io.regular`, which refuses pipes and devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support.package_modules import PACKAGE

# What reads and writes files of users and of other people. The other folders read files of the package itself.
READERS = ("audio", "compat", "data", "hub", "io", "keras", "models", "nn", "onnx", "peft", "text", "training", "utils")
WRITING = set("wax+")


def calls(module: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield the name of what is called, `open` or a method of a path, and the call."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node
            elif isinstance(node.func, ast.Attribute):
                yield f".{node.func.attr}", node


def is_unchecked(name: str, call: ast.Call) -> bool:
    """Return whether a call reads a path without a look at what is there."""
    if name != "open":
        return name in (".read_bytes", ".read_text")
    if isinstance(call.args[0], ast.Constant):  # a file of the system, such as /proc/self/statm
        return False
    mode = call.args[1] if len(call.args) > 1 else ast.Constant("r")
    writes = not isinstance(mode, ast.Constant) or bool(WRITING & {*str(mode.value)})
    return not writes and all(keyword.arg != "opener" for keyword in call.keywords)


def test_files_are_opened_by_one_mechanism() -> None:
    found = [
        f"{module.relative_to(PACKAGE)}, line {call.lineno}: {name}"
        for folder in READERS
        for module in sorted((PACKAGE / folder).rglob("*.py"))
        for name, call in calls(module)
        if is_unchecked(name, call)
    ]
    assert not found, "pass opener=regular of tallow.io.regular, or use read_regular:\n" + "\n".join(found)

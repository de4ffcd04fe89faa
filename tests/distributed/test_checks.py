"""The checks of `checks/`, in two and in four processes. All run in one job; each is a test of its own here."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKS = [
    f"{path.stem} {node.name}"
    for path in sorted((Path(__file__).parent / "checks").glob("[a-z]*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]


@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("name", CHECKS)
def test_in_several_processes(
    name: str, processes: int, checked: Callable[[int], subprocess.CompletedProcess[str]]
) -> None:
    done = checked(processes)
    if f"ok {name}" not in done.stdout.splitlines():
        pytest.fail(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-8000:]}", pytrace=False)

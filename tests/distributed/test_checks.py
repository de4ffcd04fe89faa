"""The checks of `checks/` in two and in four processes. One job runs all; each is a test of its own here."""

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
    name: str, processes: int, run_checks: Callable[[int], subprocess.CompletedProcess[str]]
) -> None:
    process = run_checks(processes)
    if f"ok {name}" not in process.stdout.splitlines():
        pytest.fail(f"exit status {process.returncode}\n{process.stdout}\n{process.stderr[-8000:]}", pytrace=False)

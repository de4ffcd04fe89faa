"""Unit tests after a start from a snapshot of Python's memory, as pages start: on shared memory and on plain memory."""

from __future__ import annotations

import pytest
from support import subsuite
from tests.pyodide.conftest import SKIPS, InPyodide

FILES = ("core", "fused", "io", "kernels", "optim")


@pytest.mark.parametrize("memory", ["plain", "shared"])
def test_unit_tests_from_a_snapshot(memory: str, in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    files = FILES if memory == "shared" else FILES[:2]
    outcome = in_pyodide(
        *(f"tests/unit/{name}" for name in files), from_snapshot=True, shared_memory=memory == "shared"
    )
    account_for(f"from a snapshot on {memory} memory", outcome, SKIPS)
    assert outcome.kernels == "wasm relaxed-simd"

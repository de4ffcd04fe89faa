"""The unit tests pass unchanged inside Pyodide, which starts as a page does: from a snapshot, on shared memory.

test_kernels_in_pyodide.py repeats some on plain memory, and test_threads_in_pyodide.py on two threads, after a plain
start. That is also how everything else in this folder starts.
"""

from __future__ import annotations

from support import subsuite
from tests.pyodide.conftest import SKIPS, InPyodide


def test_unit_suite_in_pyodide(in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    # Plans and exported graphs repeat what is computed elsewhere: every op in one is tested natively.
    elsewhere = ("compiler/test_cases.py", "export/test_every_op.py")
    ignored = [f"--ignore=tests/unit/{path}" for path in elsewhere]
    outcome = in_pyodide("tests/unit", *ignored, from_snapshot=True, shared_memory=True)
    account_for("in Pyodide", outcome, SKIPS)
    assert outcome.kernels == "wasm relaxed-simd"

"""The unit tests pass unchanged inside Pyodide, with the wheel and the shared memory of an isolated page.

The kernels' tests also run on plain memory, and so does everything else in this folder.
"""

from __future__ import annotations

from support import subsuite
from tests.pyodide.conftest import SKIPS, InPyodide


def test_unit_suite_in_pyodide(in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    outcome = in_pyodide("tests/unit", shared_memory=True)
    account_for("in Pyodide", outcome, SKIPS)
    assert outcome.kernels.startswith("wasm")

"""The unit tests pass unchanged inside Pyodide, with the wheel that a browser installs."""

from __future__ import annotations

from support import subsuite
from tests.pyodide.conftest import SKIPS, InPyodide


def test_unit_suite_in_pyodide(in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    outcome = in_pyodide("tests/unit")
    account_for("in Pyodide", outcome, SKIPS)
    assert outcome.kernels.startswith("wasm")

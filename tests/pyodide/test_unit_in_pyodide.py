"""The unit tests pass unchanged inside Pyodide, on the wheel that a browser installs."""

from __future__ import annotations

from collections.abc import Callable

from support import subsuite
from tests.pyodide.conftest import InPyodide


def test_unit_suite_in_pyodide(in_pyodide: InPyodide, account_for: Callable[[str, subsuite.Outcome], None]) -> None:
    account_for("in Pyodide", in_pyodide("tests/unit"))

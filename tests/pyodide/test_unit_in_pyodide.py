"""The unit tests pass unchanged inside Pyodide, on the wheel that a browser installs."""

from __future__ import annotations

from collections.abc import Callable

from support import subsuite
from tests.pyodide.conftest import Beside


def test_unit_suite_in_pyodide(beside: Beside, account_for: Callable[[str, subsuite.Outcome], None]) -> None:
    account_for("in Pyodide", beside.unit())


def test_kernels_with_relaxed_simd(beside: Beside, account_for: Callable[[str, subsuite.Outcome], None]) -> None:
    """The library that browsers take."""
    account_for("of the kernels with relaxed SIMD", beside.kernels())

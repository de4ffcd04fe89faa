"""The unit tests pass unchanged inside Pyodide, on the wheel that a browser installs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import subsuite
from tests.pyodide.conftest import Beside


def test_unit_suite_in_pyodide(beside: Beside, record_subsuite: Callable[[str, subsuite.Outcome], None]) -> None:
    outcome = beside.unit()
    record_subsuite("in Pyodide", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)


def test_kernels_with_relaxed_simd(beside: Beside, record_subsuite: Callable[[str, subsuite.Outcome], None]) -> None:
    """The library that browsers take."""
    outcome = beside.kernels()
    record_subsuite("of the kernels with relaxed SIMD", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)

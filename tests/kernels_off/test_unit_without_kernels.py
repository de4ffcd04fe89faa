"""Kernels are speed, never meaning: the unit tests pass on the array implementations alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import subsuite


def test_unit_suite_without_kernels(
    without_kernels: subsuite.Running, record_subsuite: Callable[[str, subsuite.Outcome], None]
) -> None:
    outcome = without_kernels.outcome(timeout_s=1200)
    record_subsuite("with kernels off", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)

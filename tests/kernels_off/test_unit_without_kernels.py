"""Kernels are speed, never meaning: the unit tests pass on the array implementations alone."""

from __future__ import annotations

from collections.abc import Callable

from support import subsuite


def test_unit_suite_without_kernels(
    without_kernels: subsuite.Running, account_for: Callable[[str, subsuite.Outcome], None]
) -> None:
    account_for("with kernels off", without_kernels.outcome(timeout_s=1200))

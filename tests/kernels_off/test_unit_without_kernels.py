"""Kernels are speed, never meaning: the unit tests pass on the array implementations alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import subsuite
from support.places import ROOT


def test_unit_suite_without_kernels(tmp_path: Path, record_subsuite: Callable[[str, subsuite.Outcome], None]) -> None:
    junit = tmp_path / "junit.xml"
    outcome = subsuite.run(
        [sys.executable, "-m", "pytest", "tests/unit", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"],
        junit,
        env=os.environ | {"TALLOW_KERNELS": "off"},
        cwd=ROOT,
        timeout_s=900,
    )
    record_subsuite("with kernels off", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)

"""Kernels are speed, never meaning: the unit tests pass on the array implementations alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from support import subsuite
from support.places import ROOT


def test_unit_suite_without_kernels(tmp_path: Path, account_for: Callable[[str, subsuite.Outcome], None]) -> None:
    junit = tmp_path / "junit.xml"
    command = [sys.executable, "-m", "pytest", "tests/unit", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
    account_for("with kernels off", subsuite.run(command, junit, env=env, cwd=ROOT, timeout_s=1200))

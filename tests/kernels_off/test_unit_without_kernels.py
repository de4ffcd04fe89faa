"""Kernels are speed, never meaning: the unit tests pass on the array implementations alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from support import subsuite
from support.places import ROOT

# What computes nothing, or compiles kernels.
ELSEWHERE = ("cli_bytecode", "cli_offers", "cli_serve", "data_workers", "hub", "kernels_build")


def test_unit_suite_without_kernels(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    junit = tmp_path / "junit.xml"
    command = [sys.executable, "-m", "pytest", "tests/unit", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    command += [f"--ignore=tests/unit/test_{name}.py" for name in ELSEWHERE]
    env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
    outcome = subsuite.run(command, junit, env=env, cwd=ROOT, timeout_s=1200)
    # All that is about what no kernel computes; tests of the C functions themselves run.
    skips = {"kernels are switched off": 0.01, "natively NumPy's BLAS multiplies": 0.001, "no real data": 0.1}
    account_for("with kernels off", outcome, skips)
    assert outcome.kernels == "off"

"""The unit tests pass with each op from a plan of `tl.compile`: a sample of what `pytest --compiled` runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from support import subsuite
from support.paths import ROOT

FOLDERS = ["tests/unit/autograd", "tests/unit/nn", "tests/unit/ops", "tests/unit/tape"]
SAMPLE = 10  # one test in so many of each file, always the same


def test_a_sample_of_the_unit_tests_from_plans(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    junit = tmp_path / "junit.xml"
    command = [sys.executable, "-m", "pytest", *FOLDERS, "--compiled", f"--sample={SAMPLE}", "-q"]
    command += ["-p", "no:cacheprovider", f"--junitxml={junit}"]
    outcome = subsuite.run(command, junit, env=os.environ | {"OMP_NUM_THREADS": "1"}, cwd=ROOT, timeout_s=600)
    account_for("compiled", outcome)
    assert outcome.passed > 300

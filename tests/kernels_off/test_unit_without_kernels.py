"""Kernels only change speed: the unit tests pass with the array implementations alone.

Parts in plain Python are repeated as a sample, see `support.repeated`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from support import repeated, subsuite
from support.paths import ROOT

# Files whose tests compute nothing, compile kernels, or repeat what is computed elsewhere. So do tests that start
# processes, such as those of commands: what these compute, others compute in the process of the tests.
ELSEWHERE = (
    *("data/test_workers.py", "generation/test_constrain_grammars.py", "hub", "keras/test_hostile_h5.py"),
    *("kernels/test_build.py", "models/test_bounds.py", "site", "text"),
)
SAMPLED = ("test_fuzz.py", *(part for part in repeated.PURE_PYTHON if not part.startswith("text/")))
# Tests about things no kernel computes; tests of the C functions themselves run.
SKIPS = {
    "kernels are switched off": 0.02,
    "natively NumPy's BLAS multiplies": 0.001,
    "no real data": 0.1,
    "workers are for WASM": 0.001,
}


def without_kernels(*arguments: str, folder: Path) -> subsuite.Outcome:
    junit = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", *arguments, "-m", "not native", *repeated.ignored(ELSEWHERE)]
    env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    return subsuite.run([*command, *options], junit, env=env, cwd=ROOT, timeout_s=1200)


def test_unit_suite_without_kernels(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    outcome = without_kernels("tests/unit", *repeated.ignored(SAMPLED), folder=tmp_path)
    account_for("with kernels off", outcome, SKIPS)
    assert outcome.kernels == "off"


def test_sample_of_parts_in_plain_python(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    outcome = without_kernels(*repeated.sampled(SAMPLED), folder=tmp_path)
    account_for("of parts in plain Python with kernels off", outcome, SKIPS)
    assert outcome.passed > 300

"""Kernels only change speed: the unit tests pass with the array implementations alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from support import subsuite
from support.paths import ROOT

# Files whose tests compute nothing, compile kernels, or repeat what is computed elsewhere. So do tests that start
# processes, such as those of commands: what these compute, others compute in the process of the tests.
ELSEWHERE = (
    "site/test_bytecode.py",
    "site/test_offers.py",
    "site/test_static_server.py",
    "site/test_shared_module.py",
    "site/test_snapshot.py",
    "compiler/test_cases.py",
    "data/test_workers.py",
    "generation/test_constrain_grammars.py",
    "hub/test_hub.py",
    "keras/test_hostile_h5.py",
    "kernels/test_build.py",
    "text",
)


def test_unit_suite_without_kernels(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    junit = tmp_path / "junit.xml"
    command = [sys.executable, "-m", "pytest", "tests/unit", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    command += ["-m", "not native", *(f"--ignore=tests/unit/{path}" for path in ELSEWHERE)]
    env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
    outcome = subsuite.run(command, junit, env=env, cwd=ROOT, timeout_s=1200)
    # tests about things no kernel computes; tests of the C functions themselves run
    skips = {"kernels are switched off": 0.01, "natively NumPy's BLAS multiplies": 0.001, "no real data": 0.1}
    skips["workers are for WASM"] = 0.001
    account_for("with kernels off", outcome, skips)
    assert outcome.kernels == "off"

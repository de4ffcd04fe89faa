"""The unit tests with their tensors on the CuPy stand-in, as `pytest --device like-cuda` runs them all.

Files that differ most by device run completely, the others as a sample: one test in SAMPLE of each file, always the
same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from support import subsuite
from support.paths import ROOT

WHOLE = [
    "tests/unit/tape/test_engine.py",
    "tests/unit/keras/test_training.py",
    "tests/unit/models/decoders/test_llama.py",
    "tests/unit/models/whisper/test_whisper.py",
    "tests/unit/nn/test_layers.py",
    "tests/unit/optim/test_optimizer.py",
]
SAMPLE = 40
FOR_THE_CPU = [  # all of their many tests would be skipped: plans, and calls so small that NumPy computes them
    "tests/unit/compiler/test_cases.py",
    "tests/unit/kernels/test_every_size.py",
]
SKIPS = {  # beginnings of allowed skip reasons, and their maximum share of all tests
    "about the CPU": 0.15,
    "no real data": 0.1,
    "kernels are switched off": 0.02,
    "natively NumPy's BLAS multiplies": 0.02,
}


def on_the_stand_in(files: list[str], *options: str, folder: Path) -> subsuite.Outcome:
    junit = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", *files, "--device", "like-cuda", "-q", "-p", "no:cacheprovider"]
    # Kernels have tests of their own, and are slow in the emulator.
    env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
    return subsuite.run([*command, f"--junitxml={junit}", *options], junit, env=env, cwd=ROOT, timeout_s=600)


def test_unit_tests_on_the_stand_in(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    outcome = on_the_stand_in(WHOLE, folder=tmp_path)
    account_for("like cuda", outcome, SKIPS)
    assert outcome.kernels == "off"


def test_a_sample_of_all_unit_tests_on_the_stand_in(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    ignored = [f"--ignore={path}" for path in [*WHOLE, *FOR_THE_CPU]]
    outcome = on_the_stand_in(["tests/unit"], f"--sample={SAMPLE}", *ignored, folder=tmp_path)
    account_for("of all files like cuda", outcome, SKIPS)
    assert outcome.passed > 150

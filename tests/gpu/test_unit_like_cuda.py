"""The unit tests with their tensors on the stand-in of `cuda`, as `pytest --device like-cuda` runs them all.

Those that differ most by device run whole, of the others a sample: a case in SAMPLE of each file, always the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from support import subsuite
from support.places import ROOT

WHOLE = ("autograd", "keras_training", "llama", "nn_layers", "optim_optimizer", "whisper")
SAMPLE = 20
SKIPS = {  # what the reason begins with, and which share of all tests it may be
    "about the CPU": 0.15,
    "no real data": 0.1,
    "kernels are switched off": 0.02,
    "natively NumPy's BLAS multiplies": 0.02,
}


def on_the_stand_in(files: list[str], *options: str, folder: Path) -> subsuite.Outcome:
    junit = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", *files, "--device", "like-cuda", "-q", "-p", "no:cacheprovider"]
    # The kernels have tests of their own, and take long where they are emulated.
    env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
    return subsuite.run([*command, f"--junitxml={junit}", *options], junit, env=env, cwd=ROOT, timeout_s=600)


def test_unit_tests_on_the_stand_in(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    outcome = on_the_stand_in([f"tests/unit/test_{name}.py" for name in WHOLE], folder=tmp_path)
    account_for("like cuda", outcome, SKIPS)
    assert outcome.kernels == "off"


def test_a_sample_of_all_unit_tests_on_the_stand_in(tmp_path: Path, account_for: subsuite.AccountFor) -> None:
    ignored = [f"--ignore=tests/unit/test_{name}.py" for name in WHOLE]
    outcome = on_the_stand_in(["tests/unit"], f"--sample={SAMPLE}", *ignored, folder=tmp_path)
    account_for("of all files like cuda", outcome, SKIPS)
    assert outcome.passed > 300

"""Some of the unit tests with their tensors on the stand-in of `cuda`, as `pytest --device like-cuda` runs them all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from support import subsuite
from support.places import ROOT

FILES = ("autograd", "keras_training", "llama", "nn_layers", "optim_optimizer", "whisper")


def test_unit_tests_on_the_stand_in(tmp_path: Path, account_for: Callable[[str, subsuite.Outcome], None]) -> None:
    junit = tmp_path / "junit.xml"
    files = [f"tests/unit/test_{name}.py" for name in FILES]
    options = ["--device", "like-cuda", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    # The kernels have tests of their own, and take long where they are emulated.
    env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
    account_for(
        "like cuda",
        subsuite.run([sys.executable, "-m", "pytest", *files, *options], junit, env=env, cwd=ROOT, timeout_s=600),
    )

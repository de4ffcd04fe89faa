"""`pip install .` and the core work on the oldest and the newest Python that tallow supports and this machine has."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import pythons, subsuite
from support.paths import ROOT

CORE = (
    *("tape/test_engine", "tape/test_modes", "core/test_creation", "core/test_printing", "core/test_tensor"),
    *("data/test_loader", "io/test_safetensors", "kernels/test_table", "nn/test_layers", "nn/test_module"),
    *("ops/test_losses", "optim/test_optimizer", "test_names", "test_random"),
)
OWN = "{}.{}".format(*sys.version_info)  # the rest of the suite runs on it


@pytest.mark.parametrize("end", [0, -1], ids=["oldest", "newest"])
def test_core_on_another_python(end: int, account_for: Callable[[str, subsuite.Outcome], None], tmp_path: Path) -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r"Python :: (\d+\.\d+)", settings)
    assert OWN in supported
    version = [each for each in supported if each == OWN or pythons.find(each)][end]
    python = None if version == OWN else pythons.find(version)
    if python is None:
        pytest.skip(f"the whole suite runs on Python {OWN}, and this machine has none beyond it")
    python = pythons.install(python, tmp_path / "env")
    junit = tmp_path / "junit.xml"
    tests = [f"tests/unit/{name}.py" for name in CORE]
    command = [str(python), "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    env = pythons.environment() | {"PYTHONDONTWRITEBYTECODE": "1"}  # not the folder of the checkout's tests
    outcome = subsuite.run(command, junit, env=env, cwd=ROOT, timeout_s=1200)
    account_for(f"on Python {version}", outcome, {"could not import 'safetensors": 0.02})

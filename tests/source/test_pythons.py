"""`pip install .` on newer Pythons than the one that runs the suite, and what the core does there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import pythons, subsuite
from support.places import ROOT

CORE = (
    *("autograd", "creation", "data_loader", "io_safetensors", "kernels_table", "losses", "modes", "module", "names"),
    *("nn_layers", "optim_optimizer", "printing", "random", "tensor"),
)


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_core_on_another_python(
    version: str, account_for: Callable[[str, subsuite.Outcome], None], tmp_path: Path
) -> None:
    python = pythons.find(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    python = pythons.installed(python, tmp_path / "env")
    junit = tmp_path / "junit.xml"
    tests = [f"tests/unit/test_{name}.py" for name in CORE]
    command = [str(python), "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    env = pythons.environment() | {"PYTHONDONTWRITEBYTECODE": "1"}  # not into the checkout's tests
    outcome = subsuite.run(command, junit, env=env, cwd=ROOT, timeout_s=1200)
    account_for(f"on Python {version}", outcome, {"could not import 'safetensors": 0.02})

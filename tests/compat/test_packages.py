"""Packages written for PyTorch compute the same numbers on tallow, from the same weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT
from tests.compat.packages import CASES

pytestmark = pytest.mark.native
RTOL = 2e-4  # float32 through dozens of layers


@pytest.fixture(scope="module")
def numbers(packages_dir: Path) -> dict[str, dict[str, Any]]:
    """The numbers of each case, by library. All cases of a library share a process: imports take the longest."""
    environment = {**os.environ, "PYTHONPATH": str(packages_dir)}
    program = str(ROOT / "tests" / "compat" / "packages.py")
    commands = {library: [sys.executable, "-W", "ignore", program, library, *CASES] for library in ("torch", "tallow")}
    started = {k: subprocess.Popen(c, env=environment, stdout=subprocess.PIPE, text=True) for k, c in commands.items()}
    lines = {library: process.communicate(timeout=300)[0].splitlines() for library, process in started.items()}
    return {k: {name: json.loads(text) for name, text in (line.split("\t") for line in v)} for k, v in lines.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_pytorchs(numbers: dict[str, dict[str, Any]], name: str) -> None:
    expected, found = numbers["torch"][name], numbers["tallow"][name]
    assert not isinstance(expected, str), expected
    assert not isinstance(found, str), found
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=1e-6)

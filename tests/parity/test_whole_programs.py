"""Whole programs, written for PyTorch, print the same under PyTorch and under tallow.

Each runs unchanged in a process of its own, from the same weights and random numbers; what it prints is compared line
by line, its decimals to 1e-4.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from compat.harness import PROGRAMS
from support.paths import ROOT
from support.scripts import run_script

HARNESS = ROOT / "tests/compat/harness.py"
RUNS = [*PROGRAMS, "gpt --plain-attention", "resnet --block bottleneck", "words --rnn GRU", "words --rnn TANH"]
DECIMAL = re.compile(r"(-?\d+\.\d+(?:e-?\d+)?)")


def under_tallow(*arguments: str) -> str:
    """In a process that has not imported PyTorch."""
    process = subprocess.run([sys.executable, HARNESS, "tallow", *arguments], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout


def lines_of(printed: str) -> list[str]:
    return re.sub(r"\b(torch|tallow)\.", "", printed).splitlines()


@pytest.mark.parametrize("run", RUNS)
def test_prints_the_same(run: str, tmp_path: Path) -> None:
    program, *options = run.split()
    arguments = (program, "--init", str(tmp_path / "init.pt"), *options)
    expected = lines_of(run_script(HARNESS, "torch", *arguments, folder=tmp_path))  # which writes the first weights
    lines = lines_of(under_tallow(*arguments))
    assert len(lines) == len(expected)
    for line, expected_line in zip(lines, expected, strict=True):
        ours, theirs = DECIMAL.split(line), DECIMAL.split(expected_line)
        assert ours[::2] == theirs[::2]
        assert [float(x) for x in ours[1::2]] == pytest.approx([float(x) for x in theirs[1::2]], rel=1e-4, abs=1e-4)

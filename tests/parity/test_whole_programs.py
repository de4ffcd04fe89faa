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
from support.places import ROOT

RUNS = [*PROGRAMS, "gpt --plain-attention", "resnet --block bottleneck", "words --rnn GRU", "words --rnn TANH"]
DECIMAL = re.compile(r"(-?\d+\.\d+(?:e-?\d+)?)")


def printed(module: str, run: str, init: Path) -> list[str]:
    program, *args = run.split()
    command = [sys.executable, str(ROOT / "tests/compat/harness.py"), module, program, "--init", str(init), *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return re.sub(r"\b(torch|tallow)\.", "", done.stdout).splitlines()


@pytest.mark.parametrize("run", RUNS)
def test_prints_the_same(run: str, tmp_path: Path) -> None:
    expected = printed("torch", run, tmp_path / "init.pt")  # which writes the first weights
    lines = printed("tallow", run, tmp_path / "init.pt")
    assert len(lines) == len(expected)
    for line, wanted in zip(lines, expected, strict=True):
        ours, theirs = DECIMAL.split(line), DECIMAL.split(wanted)
        assert ours[::2] == theirs[::2]
        assert [float(x) for x in ours[1::2]] == pytest.approx([float(x) for x in theirs[1::2]], rel=1e-4, abs=1e-4)

"""What the README shows runs, and does what PyTorch does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT

EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)


KERAS = [example for example in EXAMPLES if "import keras" in example]
PYTORCHS = [example for example in EXAMPLES if example not in KERAS]


def output_of(program: str, folder: Path) -> str:
    """What a program prints; `folder` is where it writes its files."""
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def test_there_are_examples() -> None:
    assert PYTORCHS
    assert KERAS


@pytest.mark.parametrize("example", PYTORCHS)
def test_example_prints_what_pytorch_prints(example: str, tmp_path: Path) -> None:
    printed = output_of(example, tmp_path)
    assert printed
    assert printed == output_of(example.replace("import tallow as tl", "import torch as tl"), tmp_path)


@pytest.mark.parametrize("example", KERAS)
def test_example_in_keras_way_learns(example: str, tmp_path: Path) -> None:
    printed = output_of(example, tmp_path)
    assert float(printed.split()[-1]) > 0.85

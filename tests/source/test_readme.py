"""What the README shows runs, and does what PyTorch does."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.places import ROOT

EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)


def output_of(program: str) -> str:
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_there_is_an_example() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_prints_what_pytorch_prints(example: str) -> None:
    printed = output_of(example)
    assert printed
    assert printed == output_of(example.replace("import tallow as tl", "import torch as tl"))

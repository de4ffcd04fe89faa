"""The programs in README and the guides run, and do what PyTorch does. Guides that are one program have other tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT

ONE_PROGRAM = ("kernels.md", "porting.md")
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in ONE_PROGRAM)]
EXAMPLES = {
    f"{page.stem}-{i}": example
    for page in PAGES
    for i, example in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
}
KERAS = [name for name, example in EXAMPLES.items() if "import keras" in example]
PYTORCHS = [name for name in EXAMPLES if name not in KERAS]
MOST_LINES = 160


def output_of(program: str, folder: Path) -> str:
    """What a program prints; `folder` is where it writes its files."""
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def test_there_are_examples() -> None:
    assert "README-0" in PYTORCHS
    assert KERAS


def test_readme_is_short_and_leads_to_every_guide() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"](docs/{page.name})" not in text] == []


@pytest.mark.parametrize("name", PYTORCHS)
def test_example_prints_what_pytorch_prints(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    printed = output_of(example, tmp_path)
    assert printed
    assert printed == output_of(example.replace("import tallow as tl", "import torch as tl"), tmp_path)


@pytest.mark.parametrize("name", KERAS)
def test_example_in_keras_way_learns(name: str, tmp_path: Path) -> None:
    printed = output_of(EXAMPLES[name], tmp_path)
    assert float(printed.split()[-1]) > 0.85

"""docs/candle.md: each line of its tables runs, and the differences it lists exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tallow as tl
from tallow.nn import functional as F

pytestmark = pytest.mark.native  # reads the checkout
GUIDE = Path(__file__).parents[2] / "docs" / "candle.md"
ROW = re.compile(r"\| (`.+) \| `(.+)` \|")


def lines() -> list[str]:
    return [row[2] for line in GUIDE.read_text(encoding="utf-8").splitlines() if (row := ROW.fullmatch(line))]


def test_every_line_runs(tmp_path: Path) -> None:
    tl.manual_seed(0)
    names = {
        "tl": tl, "F": F, "x": tl.randn(2, 3, 4), "y": tl.randn(2, 3, 4), "v": tl.randn(3), "s": tl.tensor(2.0),
        "w": tl.randn(4, 4, requires_grad=True), "ids": tl.tensor([0, 2]), "path": tmp_path / "x.safetensors",
        "path_npy": tmp_path / "x.npy",
    }  # fmt: skip
    assert len(lines()) > 60
    for line in lines():
        try:
            exec(line, dict(names))
        except Exception as error:
            raise AssertionError(f"{line}: {error}") from error


def test_the_differences() -> None:
    x = tl.arange(10.0)
    assert [len(part) for part in x.tensor_split(4)] == [3, 3, 2, 2]  # as candle's chunk
    assert [len(part) for part in x.chunk(4)] == [3, 3, 3, 1]
    assert tl.zeros(2, 3, 4).mT.shape == (2, 4, 3)
    assert (x > 1).dtype is tl.bool

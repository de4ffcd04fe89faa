"""tallow.nn: its table of families is correct, and modules are imported on first use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from tallow import nn
from tallow.errors import MissingNameError
from tallow.nn import CANDLE, FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_family_names_are_the_public_classes_of_its_file(family: str) -> None:
    module = importlib.import_module(f"tallow.nn.{family}")
    own = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert set(FAMILIES[family].split()) == own
    assert all(getattr(nn, name) is getattr(module, name) for name in own)


@pytest.mark.parametrize("file", CANDLE)
def test_candles_names_are_those_of_its_file(file: str) -> None:
    """Including names of files in the folder: `embedding`, `linear`."""
    module = importlib.import_module(f"tallow.nn.candle.{file}")
    importlib.import_module("tallow.nn.linear")
    assert all(getattr(nn, name) is getattr(module, name) for name in CANDLE[file].split())


def test_dir_and_all_list_existing_names() -> None:
    assert set(nn.__all__) <= set(dir(nn))
    assert len(nn.__all__) == len(set(nn.__all__))


def test_a_missing_name_raises() -> None:
    with pytest.raises(MissingNameError, match="CrossMapLRN2d"):
        _ = nn.CrossMapLRN2d


@pytest.mark.native
def test_import_loads_no_family() -> None:
    code = "import sys, tallow.nn; print(*[m for m in sys.modules if m.startswith('tallow.nn.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "tallow.nn.linear" in loaded
    assert not {f"tallow.nn.{family}" for family in (*FAMILIES, "candle")} & set(loaded)

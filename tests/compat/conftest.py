"""Fixtures of the packages that tests install without PyTorch."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from support.paths import ROOT


@pytest.fixture(scope="session")
def packages_dir() -> Path:
    """The folder with the packages of `packages.PINNED`, which scripts/test installs."""
    sys.path.insert(0, str(ROOT / "scripts"))
    folder: Path = importlib.import_module("fetch_packages").place()
    if not folder.is_dir():
        pytest.skip("the packages are not installed: run scripts/test, or scripts/fetch_packages.py")
    return folder

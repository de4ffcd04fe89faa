"""Fixtures of the packages that tests install without PyTorch."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from support.paths import ROOT


def _place(requirements: str) -> Path:
    sys.path.insert(0, str(ROOT / "scripts"))
    fetch = importlib.import_module("fetch_packages")
    folder: Path = fetch.place(getattr(fetch, requirements))
    if not folder.is_dir():
        pytest.skip("the packages are not installed: run scripts/test, or scripts/fetch_packages.py")
    return folder


@pytest.fixture(scope="session")
def packages_dir() -> Path:
    """The folder with the packages of the quick cases, which scripts/test installs."""
    return _place("QUICK")


@pytest.fixture(scope="session")
def ecosystem_dir() -> Path:
    """The folder with all packages, which `scripts/fetch_packages.py --ecosystem` installs."""
    return _place("ECOSYSTEM")

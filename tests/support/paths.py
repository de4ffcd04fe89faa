"""Paths of the checkout, the cache and the real data."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cache_dir() -> Path:
    """Return the folder for downloads and builds, which is outside the checkout; scripts/test uses the same one."""
    if override := os.environ.get("TALLOW_CACHE"):
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tallow"


def data_dir() -> Path:
    """Return the folder of real checkpoints: `TALLOW_TEST_DATA`, or `../shared/data` next to the checkout."""
    return Path(os.environ.get("TALLOW_TEST_DATA", ROOT.parent / "shared" / "data"))

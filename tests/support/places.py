"""Where the checkout, the cache and the real data are."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cache_dir() -> Path:
    """What is downloaded or built once and kept outside the checkout; the same place as in scripts/test."""
    if chosen := os.environ.get("TALLOW_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tallow"


def data_dir() -> Path:
    """Real checkpoints and their expected output: `TALLOW_TEST_DATA`, or `../shared/data` beside the checkout."""
    return Path(os.environ.get("TALLOW_TEST_DATA", ROOT.parent / "shared" / "data"))

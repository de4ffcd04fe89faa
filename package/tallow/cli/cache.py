"""The cache folder of tallow's commands and scripts."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return `$TALLOW_CACHE`, or `tallow` in `$XDG_CACHE_HOME` or `~/.cache`. The folder may not exist."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TALLOW_CACHE") or caches / "tallow")

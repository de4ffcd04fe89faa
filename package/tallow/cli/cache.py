"""Where tallow's commands and scripts keep what they fetch and make."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$TALLOW_CACHE`, or `tallow` in `$XDG_CACHE_HOME` or `~/.cache`. It need not exist."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TALLOW_CACHE") or caches / "tallow")

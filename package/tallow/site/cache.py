"""The cache folder of tallow's commands and scripts."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def cache_folder() -> Path:
    """Return `$TALLOW_CACHE`, or `tallow` in `$XDG_CACHE_HOME` or `~/.cache`. The folder may not exist."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TALLOW_CACHE") or caches / "tallow")


def cache_key(*parts: bytes) -> str:
    """Return a name for what depends on `parts` only: the SHA-256 of their SHA-256, in hexadecimal."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

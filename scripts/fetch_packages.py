#!/usr/bin/env python3
"""Install the packages of tests/compat/packages.py, without PyTorch and their other requirements, and print the folder.

They go to a folder with a digest of their versions in its name, next to the copy of scripts/fetch_pyodide.py. It is
made once and then used offline.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from fetch_pyodide import cache_folder

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "compat"))
from packages import PINNED


def place() -> Path:
    """Return the folder of the packages for this Python. torchvision has compiled parts."""
    key = "\n".join([sys.version, *PINNED])
    return cache_folder() / f"packages-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def fetch() -> Path:
    """Install the packages unless they are there. Return their folder."""
    folder = place()
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            target = Path(scratch) / "packages"
            options = ["-q", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", str(target)]
            subprocess.run([sys.executable, "-m", "pip", "install", *options, *PINNED], check=True)
            target.rename(folder)
    return folder


if __name__ == "__main__":
    print(fetch())

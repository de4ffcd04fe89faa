#!/usr/bin/env python3
"""Install the packages of tests/compat, without PyTorch and their other requirements, and print the folder.

    scripts/fetch_packages.py                those that every run of the tests needs
    scripts/fetch_packages.py --ecosystem    all of them, for `scripts/test tests/compat --ecosystem`

They go to a folder with a digest of their versions in its name, next to the copy of scripts/fetch_pyodide.py. It is
made once and then used offline.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from fetch_pyodide import cache_folder

_CASES = Path(__file__).parent.parent / "tests" / "compat"
QUICK, ECOSYSTEM = _CASES / "requirements.txt", _CASES / "ecosystem" / "requirements.txt"


def place(requirements: Path = QUICK) -> Path:
    """Return the folder of the packages for this Python. torchvision has compiled parts."""
    key = "\n".join([sys.version, *requirements.read_text(encoding="utf-8").split()])
    return cache_folder() / f"packages-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def fetch(requirements: Path = QUICK) -> Path:
    """Install the packages unless they are there. Return their folder."""
    folder = place(requirements)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            target = Path(scratch) / "packages"
            options = ["-q", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", str(target)]
            subprocess.run([sys.executable, "-m", "pip", "install", *options, "-r", str(requirements)], check=True)
            target.rename(folder)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Install the packages of tests/compat.")
    parser.add_argument("--ecosystem", action="store_true", help="all packages")
    print(fetch(ECOSYSTEM if parser.parse_args().ecosystem else QUICK))

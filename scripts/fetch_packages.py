#!/usr/bin/env python3
"""Install the packages of tests/compat, without PyTorch and their other requirements, and print the folder.

    scripts/fetch_packages.py                those that every run of the tests needs
    scripts/fetch_packages.py --ecosystem    all of them, for `scripts/test tests/compat --ecosystem`
    scripts/fetch_packages.py --wheels       wheels for a browser tab: timm, transformers and what they require

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


# For Pyodide's Python. The last line has wheels with compiled parts, of which tests use the Python files.
WHEELS = (
    *("timm==1.0.31", "transformers==5.24.0", "huggingface_hub==2.4.0", "httpx2==2.16.2", "httpx2-jsfetch==1.0"),
    *("httpcore2==2.16.2", "h11==0.16.0", "truststore==0.10.5", "idna==3.20", "filelock==4.3.1", "fsspec==2026.9.0"),
    *("click==8.5.1", "tqdm==4.70.1", "typer==0.29.2", "rich==15.0.0", "shellingham==1.5.4", "annotated-doc==0.0.7"),
    *("markdown-it-py==4.3.0", "mdurl==0.1.2", "pygments==2.21.0"),
    *("torchvision==0.28.0", "pyyaml==6.0.4"),
)
FOR_PYODIDE = ("--python-version=3.14", "--platform=manylinux_2_28_x86_64", "--implementation=cp")
PIP = (sys.executable, "-m", "pip")
QUIETLY = ("-q", "--disable-pip-version-check", "--no-deps")


def place(requirements: Path = QUICK) -> Path:
    """Return the folder of the packages for this Python. torchvision has compiled parts."""
    return _place("packages", sys.version, *requirements.read_text(encoding="utf-8").split())


def wheels_place() -> Path:
    """Return the folder of the wheels for a tab."""
    return _place("wheels", *WHEELS)


def _place(name: str, *versions: str) -> Path:
    digest = hashlib.sha256("\n".join(versions).encode()).hexdigest()
    return cache_folder() / f"{name}-{digest[:12]}"


def fetch(requirements: Path = QUICK) -> Path:
    """Install the packages unless they are there. Return their folder."""
    return _filled(
        place(requirements), [*PIP, "install", *QUIETLY, "--no-compile", "-r", str(requirements), "--target"]
    )


def fetch_wheels() -> Path:
    """Download the wheels unless they are there. Return their folder."""
    return _filled(wheels_place(), [*PIP, "download", *QUIETLY, "--only-binary=:all:", *FOR_PYODIDE, *WHEELS, "--dest"])


def _filled(folder: Path, command: list[str]) -> Path:
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            target = Path(scratch) / "packages"
            subprocess.run([*command, str(target)], check=True)
            target.rename(folder)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Install the packages of tests/compat.")
    parser.add_argument("--ecosystem", action="store_true", help="all packages")
    parser.add_argument("--wheels", action="store_true", help="wheels for a browser tab")
    options = parser.parse_args()
    print(fetch_wheels() if options.wheels else fetch(ECOSYSTEM if options.ecosystem else QUICK))

#!/usr/bin/env python3
"""Install the packages of tests/compat, without PyTorch and their other requirements, and print the folder.

    scripts/fetch_packages.py                those that every run of the tests needs
    scripts/fetch_packages.py --ecosystem    all of them, for `scripts/test tests/compat --ecosystem`
    scripts/fetch_packages.py --wheels       wheels for a browser tab: timm, transformers, Keras and what they require
    scripts/fetch_packages.py --wheels --ecosystem    those, and wheels of other packages that run in a tab

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


# For Pyodide's Python. The last line of the first has wheels with compiled parts, of which tests use the Python files.
WHEELS = (
    *("timm==1.0.31", "transformers==5.24.0", "huggingface_hub==2.4.0", "httpx2==2.16.2", "httpx2-jsfetch==1.0"),
    *("httpcore2==2.16.2", "h11==0.16.0", "truststore==0.10.5", "idna==3.20", "filelock==4.3.1", "fsspec==2026.9.0"),
    *("click==8.5.1", "tqdm==4.70.1", "typer==0.29.2", "rich==15.0.0", "shellingham==1.5.4", "annotated-doc==0.0.7"),
    *("markdown-it-py==4.3.0", "mdurl==0.1.2", "pygments==2.21.0"),
    *("keras==3.15.1", "absl-py==2.5.1", "namex==0.1.0"),
    *("torchvision==0.28.0", "pyyaml==6.0.4"),
)
OTHER_WHEELS = (
    *("diffusers==0.42.1", "einops==0.8.2", "einx==0.4.3", "entmax==1.3", "frozendict==2.5.1", "gpytorch==1.15.2"),
    *("linear-operator==0.6.1", "loguru==0.7.3", "opt-einsum==3.4.0", "pyro-api==0.1.2", "pyro-ppl==1.9.2"),
    *("rotary-embedding-torch==0.9.1", "torch-einops-utils==0.2.0", "torchdiffeq==0.2.5", "x-transformers==2.31.10"),
)
FOR_PYODIDE = ("--python-version=3.14", "--platform=manylinux_2_28_x86_64", "--implementation=cp")
PIP = (sys.executable, "-m", "pip")
QUIETLY = ("-q", "--disable-pip-version-check", "--no-deps")


def place(requirements: Path = QUICK) -> Path:
    """Return the folder of the packages for this Python. torchvision has compiled parts."""
    return _place("packages", sys.version, *requirements.read_text(encoding="utf-8").split())


def wheels_place(wheels: tuple[str, ...] = WHEELS) -> Path:
    """Return the folder of the wheels for a tab."""
    return _place("wheels", *wheels)


def _place(name: str, *versions: str) -> Path:
    digest = hashlib.sha256("\n".join(versions).encode()).hexdigest()
    return cache_folder() / f"{name}-{digest[:12]}"


def fetch(requirements: Path = QUICK) -> Path:
    """Install the packages unless they are there. Return their folder."""
    return _filled(
        place(requirements), [*PIP, "install", *QUIETLY, "--no-compile", "-r", str(requirements), "--target"]
    )


def fetch_wheels(wheels: tuple[str, ...] = WHEELS) -> Path:
    """Download wheels unless they are there. Return their folder."""
    download = [*PIP, "download", *QUIETLY, "--only-binary=:all:", *FOR_PYODIDE, *wheels, "--dest"]
    return _filled(wheels_place(wheels), download)


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
    if options.wheels:
        print(fetch_wheels((*WHEELS, *OTHER_WHEELS) if options.ecosystem else WHEELS))
    else:
        print(fetch(ECOSYSTEM if options.ecosystem else QUICK))

"""Build or fetch what several tests share: wheels of this checkout, the documentation, copies of what pages load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import paths


def wheel(kind: str, out: Path) -> Path:
    """Build the wheel of this checkout. `kind` is "pure" or "platform"."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out],
        cwd=paths.ROOT,
        env=os.environ | {"TALLOW_WHEEL": kind},
        check=True,
    )
    (path,) = out.glob("*.whl")
    return path


def browser_wheel(out: Path) -> Path:
    """Build the wheel of this checkout that pages install."""
    from tallow.cli.browser_wheel import pack_wheel  # conftest.py imports this module and must not load tallow

    full = out / "full"
    full.mkdir(exist_ok=True)
    return pack_wheel(out, wheel("pure", full))


def docs(out: Path, *options: str) -> Path:
    """Build the documentation site in `out` with options of scripts/build_docs.py. Fail on warnings."""
    command = [sys.executable, paths.ROOT / "scripts" / "build_docs.py", out, *options]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return out


def pyodide() -> Path:
    """Return the folder with a local copy of Pyodide, downloaded to the cache on first use."""
    return _fetch("fetch_pyodide.py")


def tokenizers() -> Path:
    """Return the folder with a local copy of the tokenizers library for pages, downloaded to the cache on first use."""
    return _fetch("fetch_tokenizers.py")


def _fetch(script: str) -> Path:
    command = [sys.executable, paths.ROOT / "scripts" / script]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Path(process.stdout.splitlines()[-1])

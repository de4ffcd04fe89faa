"""What several tests need and is made once: wheels of this checkout, and copies of what pages load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import places


def wheel(kind: str, out: Path) -> Path:
    """Build the wheel of this checkout. Args:  kind: "pure" or "platform" """
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out],
        cwd=places.ROOT,
        env=os.environ | {"TALLOW_WHEEL": kind},
        check=True,
    )
    (made,) = out.glob("*.whl")
    return made


def browser_wheel(out: Path) -> Path:
    """Build the wheel of this checkout that pages install."""
    from tallow.cli.browser_wheel import pack_wheel  # conftest.py, which imports this, needs no tallow to be loaded

    full = out / "full"
    full.mkdir(exist_ok=True)
    return pack_wheel(out, wheel("pure", full))


def docs(out: Path) -> Path:
    """Build the site of the documentation in `out`, without a warning."""
    command = [sys.executable, places.ROOT / "scripts" / "build_docs.py", out]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def pyodide() -> Path:
    """A local copy of Pyodide, fetched on first use and kept in the cache."""
    return _fetched("fetch_pyodide.py")


def tokenizers() -> Path:
    """A local copy of the tokenizers that pages use, fetched on first use and kept in the cache."""
    return _fetched("fetch_tokenizers.py")


def _fetched(script: str) -> Path:
    command = [sys.executable, places.ROOT / "scripts" / script]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.splitlines()[-1])

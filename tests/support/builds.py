"""Build or fetch what several tests share: wheels of this checkout, the documentation, copies of what pages load."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from support import guides, paths

if TYPE_CHECKING:
    import pytest


def once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Return the folder that `build` fills: once for all processes of a run, each of which asks by the same name."""
    import fcntl  # missing in Pyodide

    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # a process of several: its folder is in that of the run
        folder = folder.parent
    folder = folder / "once" / name
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)  # of a build that failed
            partial.mkdir()
            build(partial)
            partial.rename(folder)
    return folder


def linked_copy(source: Path, out: Path) -> Path:
    """Copy a folder by hard links: files may be added and removed in the copy, but not written in place."""
    return shutil.copytree(source, out, copy_function=os.link)


def change(file: Path, changed: Callable[[str], str]) -> None:
    """Change the text of a file in a linked copy. Raise AssertionError if it stays the same."""
    text = file.read_text(encoding="utf-8")
    new = changed(text)
    assert new != text, file
    file.unlink()
    file.write_text(new, encoding="utf-8")


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


def docs(out: Path, *options: str) -> Path:
    """Build the documentation site in `out` with options of scripts/build_docs.py. Fail on warnings."""
    command = [sys.executable, paths.ROOT / "scripts" / "build_docs.py", out, *options]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return out


def pyodide() -> Path:
    """Return the folder with a local copy of Pyodide, downloaded to the cache on first use."""
    return _fetch("fetch_pyodide.py")


def pyodide_with_threads(out: Path, source: Path) -> Path:
    """Link a copy of Pyodide, with the module and the scripts that docs/threads.md adds to it."""
    out.mkdir()
    for file in (*source.iterdir(), *(paths.ROOT / "web" / "threads").glob("*.js")):
        (out / file.name).symlink_to(file)
    (module,) = guides.blocks(paths.ROOT / "docs" / "threads.md", "mjs")
    (out / "pyodide-shared.mjs").write_text(module, encoding="utf-8")
    return out


def tokenizers() -> Path:
    """Return the folder with a local copy of the tokenizers library for pages, downloaded to the cache on first use."""
    return _fetch("fetch_npm.py", "tokenizers")


def markdown() -> Path:
    """Return the folder with a local copy of the Markdown libraries for pages, downloaded to the cache on first use."""
    return _fetch("fetch_npm.py", "markdown")


def axe() -> Path:
    """Return the folder with a local copy of axe-core, downloaded to the cache on first use."""
    return _fetch("fetch_npm.py", "axe")


def _fetch(script: str, *names: str) -> Path:
    command = [sys.executable, paths.ROOT / "scripts" / script, *names]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Path(process.stdout.splitlines()[-1])

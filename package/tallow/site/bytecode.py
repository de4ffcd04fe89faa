"""Add bytecode to the archives that web pages load: compiling Python takes a third or more of a page's start time.

Bytecode works with one version of Python only. Pages run Pyodide, so Pyodide compiles it, in Node. The results are
stored in tallow's cache.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from tallow.site.cache import cache_folder, cache_key
from tallow.site.node import run_in_node

WRITER = Path(__file__).with_name("bytecode_writer.py")
SCRIPT = WRITER.with_suffix(".mjs")
TIMEOUT_S = 300  # it takes a minute on a slow machine
KEPT_S = 30 * 24 * 3600


def add_bytecode(archive: Path, prefix: str, pyodide: Path) -> bool:
    """Add bytecode to the zip file `archive`, in place. Without Node 20 or later only the cache has bytecode to add.

    Args:
        prefix: where Python finds the files of the archive, as for `bytecode_writer.compile_archive`.
        pyodide: a copy of Pyodide made by scripts/fetch_pyodide.py.

    Returns:  whether the archive contains bytecode
    """
    folder = cache_folder() / "bytecode"
    folder.mkdir(parents=True, exist_ok=True)
    files = (archive, SCRIPT, WRITER, pyodide / "package.json")
    kept = folder / cache_key(prefix.encode(), *(path.read_bytes() for path in files))
    if not kept.is_file():
        _forget_old(folder)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            shutil.copyfile(archive, Path(scratch, "source.zip"))
            if not run_in_node(SCRIPT, str(pyodide), str(WRITER), scratch, prefix, timeout_s=TIMEOUT_S):
                return False
            Path(scratch, "target.zip").replace(kept)  # atomic: another process may write the same file
    kept.touch()
    shutil.copyfile(kept, archive)
    return True


def _forget_old(folder: Path) -> None:
    """Remove cached files that have not been used for a month."""
    oldest = time.time() - KEPT_S
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)

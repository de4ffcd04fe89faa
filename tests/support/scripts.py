"""Run scripts in processes that have PyTorch already imported, which saves seconds."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

TIMEOUT_S = 300


def run_script(script: Path, *arguments: str, folder: Path) -> str:
    """Run a script in `folder` and return what it prints. Fail if its exit status is not 0.

    PyTorch is in its `sys.modules` from the start; nothing else of this process is.
    """
    printed, errors = folder / "printed.txt", folder / "errors.txt"
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["torch"])
    process = server.Process(target=_run, args=(script, arguments, folder, printed, errors), daemon=True)
    process.start()
    process.join(TIMEOUT_S)
    assert process.exitcode == 0, errors.read_text()
    return printed.read_text()


def _run(script: Path, arguments: tuple[str, ...], folder: Path, printed: Path, errors: Path) -> None:
    os.chdir(folder)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    with printed.open("w") as out, errors.open("w") as err, redirect_stdout(out), redirect_stderr(err):
        runpy.run_path(str(script), run_name="__main__")

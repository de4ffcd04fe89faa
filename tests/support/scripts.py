"""Scripts in processes of their own, which the import of PyTorch is spared: it takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import runpy
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

TIMEOUT_S = 300


def run_script(script: Path) -> str:
    """What a script prints, run in its folder. It must end well."""
    printed = script.with_suffix(".txt")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["torch"])
    process = server.Process(target=_run, args=(script, printed), daemon=True)
    process.start()
    process.join(TIMEOUT_S)
    assert process.exitcode == 0, printed.read_text()
    return printed.read_text()


def _run(script: Path, printed: Path) -> None:
    os.chdir(script.parent)
    with printed.open("w") as file, redirect_stdout(file), redirect_stderr(file):
        runpy.run_path(str(script), run_name="__main__")

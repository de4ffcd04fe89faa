"""`tallow serve` as a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openai import OpenAI

from support.small_server import HANG_S

ENVIRONMENT = os.environ | {"TALLOW_API_KEY": "", "OMP_NUM_THREADS": "1"}


@contextmanager
def serving(*options: str, cwd: Path, launcher: tuple[str, ...] = ()) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command on a free port; yield the process and the URL.

    Args:
        cwd: the file `log` in it gets what the command writes.
        launcher: a command that starts it.
    """
    command = [*launcher, sys.executable, "-m", "tallow", "serve", "--port", "0", *options]
    with (cwd / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log, cwd=cwd, env=ENVIRONMENT, text=True)
    try:
        end = time.monotonic() + HANG_S
        while not (found := re.search(r"serving on (\S+)", (cwd / "log").read_text())):
            assert process.poll() is None, (cwd / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.02)
        yield process, found[1]
    finally:
        process.kill()
        process.wait()


def client_of(url: str) -> OpenAI:
    return OpenAI(base_url=url, api_key="none", max_retries=2, timeout=HANG_S)

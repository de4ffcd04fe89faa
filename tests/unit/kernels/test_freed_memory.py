"""The process keeps freed memory for the next arrays, so that the system does not clear the same pages in each step."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tallow import kernels

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(kernels.info().library == "none", reason=f"no compiled kernels: {kernels.info().reason}"),
    pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", {}), reason="not glibc"),
]
STEPS = """
import resource
import numpy as np
from tallow import kernels

kernels.info()
def step():
    arrays = [np.ones(1 << 18, np.float32) for _ in range(16)]
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
# Each thread frees 96 MiB, in blocks that glibc does not map one by one, while the others still run.
THREADS = """
import threading
from pathlib import Path
from tallow import kernels
from tallow.kernels import library

library.share_arena()
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])
have_freed = threading.Barrier(5)
def work():
    blocks = [b"1" * (1 << 20) for _ in range(96)]
    del blocks
    have_freed.wait()
    have_freed.wait()
before = resident()
for _ in range(4):
    threading.Thread(target=work).start()
have_freed.wait()
{then}()
print(resident() - before)
have_freed.wait()
"""
PAGES = (16 << 20) // os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0  # of one step; none on Windows


def printed(program: str, **settings: str) -> int:
    """Return the number that a program prints."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", program]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, env=plain | settings).stdout)


def faults(**settings: str) -> int:
    """Return how many pages the system gave to ten steps after the first, each with 16 arrays of 1 MiB."""
    return printed(STEPS, **settings)


def test_steps_reuse_the_pages_of_the_first() -> None:
    assert faults() < PAGES


@pytest.mark.parametrize("setting", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"])
def test_settings_of_the_environment_are_respected(setting: str) -> None:
    assert faults(**{setting: "131072"}) > faults()


def test_a_server_gives_freed_memory_of_all_its_threads_back() -> None:
    most = (40 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert printed(THREADS.format(then="library.give_memory_back")) < most
    # Without the call much is kept, unless the last block to be freed is the topmost one.
    assert any(printed(THREADS.format(then="kernels.info")) > most for _ in range(10))

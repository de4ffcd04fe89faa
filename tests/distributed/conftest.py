"""Start processes joined by MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.paths import ROOT

from tallow.distributed.run import find_mpiexec

HERE = Path(__file__).parent
TIMEOUT_S = 240  # generous, for a busy machine; a job that hangs is a failure

Start = Callable[..., "subprocess.CompletedProcess[str]"]


def start(processes: int, *command: str, launcher: bool = False) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in several processes, by mpiexec or by tallow's own launcher."""
    own_launcher = [sys.executable, "-m", "tallow.distributed.run", "-n", str(processes)]
    first = own_launcher if launcher else [find_mpiexec(), "-n", str(processes), sys.executable]
    paths = [ROOT / "package", ROOT / "native_gpu", HERE, ROOT / "tests", os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run([*first, *command], env=env, capture_output=True, text=True, timeout=TIMEOUT_S)


@pytest.fixture(scope="session")
def run_checks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], subprocess.CompletedProcess[str]]:
    """Return a function that runs all checks in a number of processes, once for each number."""
    processes_done: dict[int, subprocess.CompletedProcess[str]] = {}

    def run(processes: int) -> subprocess.CompletedProcess[str]:
        if processes not in processes_done:
            folder = tmp_path_factory.mktemp(f"in_{processes}")
            modules = sorted(path.stem for path in (HERE / "checks").glob("[a-z]*.py"))
            processes_done[processes] = start(processes, "-m", "checks", str(folder), *modules)
        return processes_done[processes]

    return run

"""Starting processes that are joined by MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.places import ROOT

from tallow.distributed.run import find_mpiexec

HERE = Path(__file__).parent
TIMEOUT_S = 240  # for a machine on which much else runs; a job that hangs is a failure

Start = Callable[..., "subprocess.CompletedProcess[str]"]


def start(processes: int, *command: str, launcher: bool = False) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in several processes, by mpiexec or by tallow's own launcher."""
    own = [sys.executable, "-m", "tallow.distributed.run", "-n", str(processes)]
    first = own if launcher else [find_mpiexec(), "-n", str(processes), sys.executable]
    paths = [ROOT / "package", ROOT / "native_gpu", HERE, ROOT / "tests", os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run([*first, *command], env=env, capture_output=True, text=True, timeout=TIMEOUT_S)


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], subprocess.CompletedProcess[str]]:
    """All checks in so many processes, started once."""
    done: dict[int, subprocess.CompletedProcess[str]] = {}

    def run(processes: int) -> subprocess.CompletedProcess[str]:
        if processes not in done:
            folder = tmp_path_factory.mktemp(f"in_{processes}")
            modules = sorted(path.stem for path in (HERE / "checks").glob("[a-z]*.py"))
            done[processes] = start(processes, "-m", "checks", str(folder), *modules)
        return done[processes]

    return run

"""Start a program in several processes: `python -m tallow.distributed.run -n 4 train.py --epochs 3`.

This is `mpiexec -n 4 python train.py --epochs 3` with three additions. It finds the mpiexec of the installed MPI. It
starts MPI before the program, so that the job ends whenever a process fails, even before it joins the others. And it
sets the environment variables of torchrun; see `environment`.
"""

from __future__ import annotations

import argparse
import os
import platform
import runpy
import shutil
import sys
from collections.abc import Sequence

from tallow.distributed.mpi import World, world
from tallow.distributed.mpich import file_of_mpich
from tallow.errors import MissingPackageError

MEMBER = "TALLOW_DISTRIBUTED_MEMBER"  # set in processes started by mpiexec
PORT = "29500"  # as in torchrun


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the processes, or run the program in one of them."""
    options = _parse(arguments)
    if os.environ.get(MEMBER):
        run_member(options)
    else:
        launch(options, sys.argv[1:] if arguments is None else list(arguments))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tallow.distributed.run", description="Start a program in several processes, connected by MPI."
    )
    parser.add_argument(
        "-n", "--nproc-per-node", "--nproc_per_node", type=_positive, required=True, help="number of processes"
    )
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument("program", help="a Python file, or a module with -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number of processes, got {text!r}")
    return int(text)


def launch(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    """Replace this process by mpiexec, which starts this module again in every process. Does not return."""
    os.environ[MEMBER] = "1"
    if options.nproc_per_node > 1:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # otherwise each process would use all cores
    command = [find_mpiexec(), "-n", str(options.nproc_per_node), sys.executable, "-m", "tallow.distributed.run"]
    sys.stdout.flush()
    os.execv(command[0], [*command, *arguments])


def find_mpiexec() -> str:
    """Return the mpiexec of the package mpich, or the first on the PATH.

    Raises:  MissingPackageError
    """
    path = file_of_mpich("mpiexec") or shutil.which("mpiexec")
    if path is None:
        raise MissingPackageError("mpich", "starting several processes", "mpi")
    return path


def run_member(options: argparse.Namespace) -> None:
    """Start MPI, and run the program as `python` does."""
    del os.environ[MEMBER]
    job = world()
    os.environ |= environment(job)
    sys.argv = [options.program, *options.arguments]
    try:
        if options.module:
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(options.program))
            runpy.run_path(options.program, run_name="__main__")
    except SystemExit as end:
        if end.code and job.size > 1:
            text = end.code if isinstance(end.code, str) else f"rank {job.rank} of {job.size} ends with {end.code}"
            print(text, file=sys.stderr)
            job.abort(end.code if isinstance(end.code, int) else 1)
        raise


def environment(job: World) -> dict[str, str]:
    """Return torchrun's environment variables of this process. All processes of the job must call it.

    MASTER_ADDR and MASTER_PORT keep the user's values. Nothing listens there: MPI connects the processes.

    Source:  https://docs.pytorch.org/docs/stable/elastic/run.html, Environment Variables
    """
    neighbours = job.neighbours
    first = neighbours.bcast(job.rank)  # the first rank on this machine
    machines = sorted(set(job.comm.allgather(first)))
    address = job.comm.bcast("127.0.0.1" if len(machines) == 1 else platform.node())
    numbers = {
        "RANK": job.rank,
        "WORLD_SIZE": job.size,
        "LOCAL_RANK": neighbours.rank,
        "LOCAL_WORLD_SIZE": neighbours.size,
        "GROUP_RANK": machines.index(first),
        "GROUP_WORLD_SIZE": len(machines),
        "ROLE_RANK": job.rank,
        "ROLE_WORLD_SIZE": job.size,
    }
    return {
        "MASTER_ADDR": os.environ.get("MASTER_ADDR", address),
        "MASTER_PORT": os.environ.get("MASTER_PORT", PORT),
        **{name: str(number) for name, number in numbers.items()},
    }


if __name__ == "__main__":
    main()

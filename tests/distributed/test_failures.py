"""However one process ends, the whole job ends and reports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.distributed.conftest import start

from tallow.distributed.run import main

JOIN = "import os, signal, sys, tallow as tl, tallow.distributed as dist\ndist.init_process_group()\n"
# Two ranks, of which one ends and the other waits: if both failed at once, their messages could be interleaved.
WAIT = "\ndist.all_reduce(tl.ones(1))"


# One file per process: mpiexec may drop the last output of a process that it kills.
SPEAK = "import os, sys\nsys.stderr = open(f'{__file__}.{os.getpid()}.said', 'w', buffering=1)\n"


def program(folder: Path, code: str) -> str:
    path = folder / "program.py"
    path.write_text(SPEAK + code)
    return str(path)


def assert_failed(process: subprocess.CompletedProcess[str], folder: Path, *messages: str) -> None:
    assert process.returncode != 0, process
    output = "".join(path.read_text() for path in folder.glob("*.said"))
    for words in messages:
        assert words in output, (process, output)


@pytest.mark.parametrize(
    ("end", "messages"),
    [
        ("raise KeyError('a bug')", ("KeyError: 'a bug'", "rank 1 of 2 has failed")),
        ("sys.exit(1)", ("DistributedError: all_reduce: rank 1 has ended", "waits for it")),
        ("os.kill(os.getpid(), signal.SIGKILL)", ()),
    ],
    ids=["exception", "exit", "kill"],
)
def test_a_rank_that_ends_ends_the_job(end: str, messages: tuple[str, ...], tmp_path: Path) -> None:
    code = f"{JOIN}if dist.get_rank() == 1: {end}{WAIT}"
    assert_failed(start(2, program(tmp_path, code)), tmp_path, *messages)


def test_a_rank_that_fails_before_it_has_joined(tmp_path: Path) -> None:
    code = f"import os\nif os.environ['RANK'] == '1': raise SystemExit('no data here')\n{JOIN}{WAIT}"
    assert_failed(start(2, program(tmp_path, code), launcher=True), tmp_path, "no data here")


def test_a_receive_without_a_sender_times_out(tmp_path: Path) -> None:
    """Neither rank sends and both are alive, so only the timeout detects it."""
    code = (
        f"{JOIN}rank = dist.get_rank()\ndist.destroy_process_group()\nfrom datetime import timedelta\n"
        "dist.init_process_group(timeout=timedelta(seconds=0.5 if rank == 0 else 1000))\n"
        "room = tl.empty(1)\ndist.recv(room, src=1 - dist.get_rank())"
    )
    assert_failed(
        start(2, program(tmp_path, code)), tmp_path, "timed out after 0.5 s; another rank did not call it", "same order"
    )


def test_operations_that_were_started_and_differ_end_the_job(tmp_path: Path) -> None:
    """A started operation cannot be cancelled and would never complete."""
    code = f"{JOIN}work = dist.all_reduce(tl.ones(3 + dist.get_rank()), async_op=True)\nwork.wait()"
    assert_failed(start(2, program(tmp_path, code)), tmp_path, "3 of tallow.float32 on cpu: rank 0", "4 of", "rank 1")


def test_the_launcher_says_who_is_who(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables that torchrun sets, including some left over from another job."""
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("MASTER_PORT", "1234")
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE"
    names += " MASTER_ADDR MASTER_PORT OMP_NUM_THREADS"
    code = (
        "import os, sys, pathlib, tallow.distributed as dist\n"
        f"said = [os.environ[name] for name in {names!r}.split()] + sys.argv[1:] + [__name__]\n"
        "dist.init_process_group('gloo', init_method='env://')\n"
        "pathlib.Path(__file__ + '.' + said[0]).write_text(' '.join([*said, str(dist.get_rank())]))"
    )
    path = program(tmp_path, code)
    process = start(2, path, "--flag", "x", launcher=True)
    assert process.returncode == 0, process
    outputs = [Path(f"{path}.{rank}").read_text() for rank in (0, 1)]
    assert outputs == [f"{n} 2 {n} 2 0 1 {n} 2 127.0.0.1 1234 1 --flag x __main__ {n}" for n in (0, 1)]


@pytest.mark.parametrize(
    ("arguments", "message"), [(["-n", "0", "x.py"], "positive number"), (["x.py"], "required: -n")]
)
def test_the_launchers_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_without_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    import tallow.distributed as dist

    with pytest.raises(ImportError, match=r"needs the package mpi4py\n.*install it: .*mpi4py"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="not been initialized"):
        dist.barrier()

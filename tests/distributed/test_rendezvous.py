"""If a program names its rank, MPI must agree: nothing runs as several jobs of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from support.paths import ROOT

import tallow.distributed as dist
from tallow.distributed import rendezvous
from tallow.distributed.groups import ProcessGroup
from tallow.distributed.mpi import LAUNCHED
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.training.processes import Processes


class Job:
    rank, size = 1, 4


def check(init_method: str | None = None, world_size: int = -1, rank: int = -1) -> None:
    job: Any = Job
    rendezvous.check_job(job, init_method, world_size, rank)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("init_method", "options"),
    [
        (None, {}),
        ("env://", {"rank": 1, "world_size": 4}),
        ("env://?rank=1&world_size=4", {}),
        ("tcp://10.1.1.20:23456", {"rank": 1, "world_size": 4}),
        ("tcp://10.1.1.20:23456?rank=1", {"world_size": 4}),
        ("file:///mnt/nfs/shared", {"rank": 1, "world_size": 4}),
    ],
)
def test_consistent_ranks(init_method: str | None, options: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    check(init_method, **options)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    check(init_method, **options)


@pytest.mark.parametrize(
    ("init_method", "options", "message"),
    [
        ("tcp://10.1.1.20:23456", {"rank": 0, "world_size": 4}, "rank=0, but MPI has 1"),
        ("tcp://10.1.1.20:23456?rank=1&world_size=2", {}, "world_size=2 in init_method, but MPI has 4"),
        ("tcp://10.1.1.20:23456", {"rank": 1}, "tcp:// needs world_size"),
        ("file:///mnt/nfs/shared", {"world_size": 4}, "file:// needs rank"),
        ("env://?rank=one", {}, "rank in init_method is not a number: 'one'"),
        ("zeus://", {}, "unsupported init_method='zeus://'"),
        (None, {"world_size": 2}, "world_size=2, but MPI has 4"),
    ],
)
def test_inconsistent_ranks(init_method: str | None, options: dict[str, int], message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        check(init_method, **options)
    assert message in str(error.value)
    assert error.value.hint


def test_the_environment_of_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes were started without MPI: each would be a job of its own."""
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setattr(rendezvous, "is_launched", lambda: False)
    with pytest.raises(ArgumentError, match=r"RANK=2, but MPI has 1\n.*python -m tallow\.distributed\.run -n 4"):
        check()
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(ArgumentError, match="the environment variable WORLD_SIZE is not a number: 'many'"):
        check("env://")
    monkeypatch.setattr(rendezvous, "is_launched", lambda: True)
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(ArgumentError, match="unset RANK and WORLD_SIZE"):
        check()
    assert not dist.is_torchelastic_launched()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert dist.is_torchelastic_launched()


@pytest.mark.parametrize(
    "join", ["dist.init_process_group('gloo', init_method='env://')", "Processes.join()"], ids=["program", "train"]
)
def test_processes_without_mpi_do_not_train_alone(join: str) -> None:
    code = f"import tallow.distributed as dist\nfrom tallow.training.processes import Processes\n{join}"
    env = {name: value for name, value in os.environ.items() if name not in LAUNCHED}
    env |= {"RANK": "1", "WORLD_SIZE": "2", "PYTHONPATH": str(ROOT / "package")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "the environment has WORLD_SIZE=2, but MPI has 1" in done.stderr
    assert "python -m tallow.distributed.run -n 2" in done.stderr


def test_one_process_joins_nobody() -> None:
    assert not rendezvous.has_world_size()
    assert Processes.join().size == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pg_options": object()}, "pg_options is for"),
        ({"device_id": "cuda"}, "device_id='cuda' has no index"),
    ],
)
def test_arguments_without_effect(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        dist.init_process_group(**options)
    assert not dist.is_initialized()


def test_a_timeout_is_a_duration() -> None:
    seconds: Any = 30
    with pytest.raises(ArgumentTypeError, match=r"must be a datetime\.timedelta, not int"):
        ProcessGroup([0], "gloo", seconds)

"""Process groups: which processes do something together, and by what their arrays travel."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from tallow import devices
from tallow.distributed.mpi import MpiEngine, world
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.rendezvous import check_place
from tallow.distributed.work import Work
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DeviceError

TIMEOUT = timedelta(minutes=30)
# The device types that a backend serves. gloo is PyTorch's own for the CPU; programs that ask for it get MPI.
BACKENDS = {"mpi": ("cpu",), "gloo": ("cpu",), "nccl": ("cuda",), "cpu:mpi,cuda:nccl": ("cpu", "cuda")}
BACKENDS["cpu:gloo,cuda:nccl"] = BACKENDS["cpu:mpi,cuda:nccl"]
NAMES = {("cpu",): "mpi", ("cuda",): "nccl", ("cpu", "cuda"): "cpu:mpi,cuda:nccl"}


class Engine(Protocol):
    """What moves the arrays of a device type; see `MpiEngine`. Ranks are those within the group."""

    def all_reduce(self, array: Array, op: ReduceOp) -> Work: ...
    def reduce(self, array: Array, root: int, op: ReduceOp) -> Work: ...
    def reduce_scatter(self, output: Array, array: Array, op: ReduceOp) -> Work: ...
    def broadcast(self, array: Array, root: int) -> Work: ...
    def all_gather(self, output: Array, array: Array) -> Work: ...
    def gather(self, output: Array | None, array: Array, root: int) -> Work: ...
    def scatter(self, array: Array, given: Array | None, root: int) -> Work: ...
    def send(self, array: Array, to: int, tag: int) -> Work: ...
    def receive(self, array: Array, source: int | None, tag: int) -> Any: ...


class ProcessGroup:
    """Processes of the job, by their ranks in it. Made by `init_process_group` and `new_group`.

    Arrays of the CPU travel by MPI, those of GPUs by NCCL.
    """

    def __init__(self, ranks: Sequence[int], backend: str | None, timeout: timedelta | None) -> None:
        backend = "cpu:mpi,cuda:nccl" if backend is None else str(backend).lower()
        if backend not in BACKENDS:
            raise ArgumentError(f"no backend {backend!r}", mend=f"use None or one of: {', '.join(BACKENDS)}")
        if not isinstance(timeout, timedelta | None):
            raise ArgumentTypeError(
                f"timeout must be a datetime.timedelta, not {type(timeout).__name__}", mend="timedelta(minutes=5)"
            )
        self.ranks = list(ranks)
        self.device_types = BACKENDS[backend]
        self.timeout = TIMEOUT if timeout is None else timeout
        self.mpi = MpiEngine(ranks, self.timeout)  # whatever the backend: it starts NCCL too
        self._engines: dict[str, Engine] = {"cpu": self.mpi}

    def rank(self) -> int:
        """Of this process within the group."""
        return self.mpi.rank

    def size(self) -> int:
        return self.mpi.size

    def name(self) -> str:
        """Of the backend."""
        return NAMES[self.device_types]

    def engine(self, device_type: str) -> Engine:
        """What moves the arrays of this device type; NCCL is started at its first use, by all ranks of the group.

        Raises:  DeviceError when the group does not serve the device, or something is missing
        """
        if device_type not in self.device_types:
            raise DeviceError(
                f"a process group of backend {self.name()!r} does not move tensors of device {device_type!r}",
                mend="init_process_group() without a backend serves both, cpu and cuda",
            )
        if device_type not in self._engines:
            self._engines[device_type] = importlib.import_module("tallow_cuda.nccl").NcclEngine(self.mpi)
        return self._engines[device_type]

    def bind(self, device: devices.device) -> None:
        """Start NCCL now, on this device.

        Raises:  DeviceError as `engine`, or where there is no such GPU
        """
        if device.type not in self.device_types:
            self.engine(device.type)  # says what is wrong
        devices.move(np.empty(1, np.uint8), device)  # where there is no such device this says so
        with devices.on(device) or nullcontext():
            self.engine(device.type)

    def index(self, rank: int, what: str) -> int:
        """The rank within the group of a rank of the job.

        Raises:  ArgumentError when it is not a member; `what` is the argument's name
        """
        if rank not in self.ranks:
            raise ArgumentError(f"{what}: rank {rank!r} is not in the group of ranks {self.ranks}")
        return self.ranks.index(rank)

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()  # type: ignore[attr-defined]


class GroupMember:
    """What `new_group` returns in processes outside of the new group."""

    NON_GROUP_MEMBER = object()


class _Job:
    """The group of all processes, once it is made, and the others."""

    everybody: ProcessGroup | None = None
    others: list[ProcessGroup] = []  # noqa: RUF012 - there is one job


def is_available() -> bool:
    """Whether there is mpi4py, which brings processes together: the extra `mpi` brings it."""
    return find_spec("mpi4py") is not None


is_mpi_available = is_gloo_available = is_available


def is_nccl_available() -> bool:
    """Whether CuPy is installed, and finds NCCL."""
    if find_spec("cupy") is None:
        return False
    try:
        return bool(importlib.import_module("cupy.cuda.nccl").available)
    except ImportError:
        return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun has started the process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_initialized() -> bool:
    return _Job.everybody is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: None = None,
    group_name: str = "",
    pg_options: None = None,
    device_id: Any = None,
) -> None:
    """Join the processes that `mpiexec` or `python -m tallow.distributed.run` has started together; all of them do.

    From now on an exception that this process does not catch ends the whole job.

    Args:
        backend: "mpi" for tensors of the CPU, "nccl" for those of GPUs, None for both; "gloo" is taken as "mpi".
        init_method: "env://", which None means, "tcp://..." or "file://...". MPI has brought the processes together
            already, so the address is not used. The rank and size that it leads to are compared with those of MPI:
            RANK and WORLD_SIZE in the environment if they are there, or `?rank=0&world_size=4` in the URL.
        timeout: after which waiting for the others is an error; half an hour.
        world_size, rank: compared with those of MPI; -1 if the URL or the environment says them.
        store, pg_options: refused if not None.
        group_name: nobody sees it, as in PyTorch.
        device_id: the GPU of this process, with its index: NCCL is started on it now, not at its first use.

    Raises:  MissingPackageError, DeviceError; ArgumentError the second time, or where a world_size or rank is not that
             of MPI
    """
    if _Job.everybody is not None:
        raise ArgumentError("trying to initialize the default process group twice!")
    for what, given in (("store", store), ("pg_options", pg_options)):
        if given is not None:
            raise ArgumentError(
                f"init_process_group: {what} is for what PyTorch's backends are built on; there is MPI, and NCCL",
                mend="leave it out",
            )
    device = None if device_id is None else devices.device(device_id)
    if device is not None and device.type != "cpu":
        if device.index is None:
            raise ArgumentError(f"init_process_group: device_id={str(device)!r} has no index", mend="use 'cuda:0'")
        backend = "nccl" if backend is None else backend
    job = world()
    check_place(job, init_method, world_size, rank)
    group = ProcessGroup(range(job.size), backend, timeout)
    if device is not None and device.type != "cpu":
        group.bind(device)
    _Job.everybody = group


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Close a group, or all of them. What was started has to be waited for before."""
    if group is None or group is _Job.everybody:
        for each in (*_Job.others, member(None)):
            each.close()
        _Job.others.clear()
        _Job.everybody = None
    else:
        _Job.others.remove(group)
        group.close()


def member(group: Any) -> ProcessGroup:
    """The group, or the default one for None.

    Raises:  ArgumentError when there is none, or this process is not in it
    """
    group = _Job.everybody if group is None else group
    if group is None:
        raise ArgumentError("default process group has not been initialized, please call init_process_group")
    if not isinstance(group, ProcessGroup):
        raise ArgumentError("this process is not in the group", mend="ask get_rank(group) >= 0 first")
    return group


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None) -> Any:
    """A group of these ranks of the job, None for all. All members make it, in the same order with other groups.

    Returns:  GroupMember.NON_GROUP_MEMBER in the other processes
    """
    everybody = member(None)
    ranks = everybody.ranks if ranks is None else sorted(ranks)
    for rank in ranks:
        everybody.index(rank, "new_group")
    if everybody.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(ranks, backend or everybody.name(), everybody.timeout if timeout is None else timeout)
    _Job.others.append(made)
    return made


def get_rank(group: Any = None) -> int:
    """Of this process in the group; -1 if it is not in it."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else member(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many processes the group has; -1 if this one is not in it."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else member(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    return member(group).name()


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The members' ranks in the job."""
    return list(member(group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the job of a rank in the group."""
    if not 0 <= group_rank < group.size():
        raise ArgumentError(f"group_rank {group_rank} in a group of {group.size()}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in the group of a rank in the job."""
    return group.index(global_rank, "global_rank")

"""Process groups: their members, and the backends that move their arrays."""

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
from tallow.distributed.rendezvous import check_job
from tallow.distributed.stores import Store
from tallow.distributed.work import Work
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DeviceError

TIMEOUT = timedelta(minutes=30)
# The device types that a backend serves. gloo is PyTorch's backend for the CPU; programs that request it get MPI.
BACKENDS = {"mpi": ("cpu",), "gloo": ("cpu",), "nccl": ("cuda",), "cpu:mpi,cuda:nccl": ("cpu", "cuda")}
BACKENDS["cpu:gloo,cuda:nccl"] = BACKENDS["cpu:mpi,cuda:nccl"]
NAMES = {("cpu",): "mpi", ("cuda",): "nccl", ("cpu", "cuda"): "cpu:mpi,cuda:nccl"}


class Engine(Protocol):
    """The interface to move the arrays of a device type; see `MpiEngine`. Ranks are those in the group."""

    def all_reduce(self, array: Array, op: ReduceOp) -> Work:
        """Reduce the arrays of all ranks, in place in every rank."""

    def reduce(self, array: Array, root: int, op: ReduceOp) -> Work:
        """Reduce the arrays of all ranks, in place in `root`."""

    def reduce_scatter(self, output: Array, array: Array, op: ReduceOp) -> Work:
        """Reduce arrays with one part per rank, and give each rank its part."""

    def broadcast(self, array: Array, root: int) -> Work:
        """Copy the array of `root` to all ranks."""

    def all_gather(self, output: Array, array: Array) -> Work:
        """Collect the arrays of all ranks in every rank's `output`."""

    def gather(self, output: Array | None, array: Array, root: int) -> Work:
        """Collect the arrays of all ranks in the `output` of `root`."""

    def scatter(self, array: Array, source: Array | None, root: int) -> Work:
        """Give each rank its part of the array `source` of `root`."""

    def send(self, array: Array, to: int, tag: int) -> Work:
        """Send an array to a rank."""

    def receive(self, array: Array, source: int | None, tag: int) -> Any:
        """Receive an array from a rank, or from any rank."""


class ProcessGroup:
    """A group of processes. Use `init_process_group` and `new_group` to create one.

    CPU arrays are sent by MPI, GPU arrays by NCCL.
    """

    def __init__(self, ranks: Sequence[int], backend: str | None, timeout: timedelta | None) -> None:
        backend = "cpu:mpi,cuda:nccl" if backend is None else str(backend).lower()
        if backend not in BACKENDS:
            raise ArgumentError(f"unknown backend {backend!r}", hint=f"use None or one of: {', '.join(BACKENDS)}")
        if not isinstance(timeout, timedelta | None):
            raise ArgumentTypeError(
                f"timeout must be a datetime.timedelta, not {type(timeout).__name__}", hint="timedelta(minutes=5)"
            )
        self.ranks = list(ranks)
        self.device_types = BACKENDS[backend]
        self.timeout = TIMEOUT if timeout is None else timeout
        self.mpi = MpiEngine(ranks, self.timeout)  # needed by every backend: it also starts NCCL
        self._engines: dict[str, Engine] = {"cpu": self.mpi}

    def rank(self) -> int:
        """Return the rank of this process in the group."""
        return self.mpi.rank

    def size(self) -> int:
        """Return the number of processes in the group."""
        return self.mpi.size

    def name(self) -> str:
        """Return the name of the backend."""
        return NAMES[self.device_types]

    def engine(self, device_type: str) -> Engine:
        """Return the engine of a device type. NCCL starts on first use, in all ranks of the group together.

        Raises:  DeviceError if the group does not support the device, or something is missing
        """
        if device_type not in self.device_types:
            raise DeviceError(
                f"a process group of backend {self.name()!r} does not support tensors of device {device_type!r}",
                hint="init_process_group() without a backend supports both cpu and cuda",
            )
        if device_type not in self._engines:
            self._engines[device_type] = importlib.import_module("tallow_cuda.nccl").NcclEngine(self.mpi)
        return self._engines[device_type]

    def bind(self, device: devices.device) -> None:
        """Start NCCL now, on this device.

        Raises:  DeviceError as in `engine`, or if the GPU does not exist
        """
        if device.type not in self.device_types:
            self.engine(device.type)  # raises
        devices.move(np.empty(1, np.uint8), device)  # raises if the device does not exist
        with devices.guard_on(device) or nullcontext():
            self.engine(device.type)

    def index(self, rank: int, what: str) -> int:
        """Return the rank in the group of a rank in the job.

        Raises:  ArgumentError if it is not a member; `what` is the argument's name
        """
        if rank not in self.ranks:
            raise ArgumentError(f"{what}: rank {rank!r} is not in the group of ranks {self.ranks}")
        return self.ranks.index(rank)

    def close(self) -> None:
        """Close the engines."""
        for engine in self._engines.values():
            engine.close()  # type: ignore[attr-defined]


class GroupMember:
    """The class of the value that `new_group` returns in processes outside the new group."""

    NON_GROUP_MEMBER = object()


class _Job:
    """The default group, once it is initialised, and the other groups."""

    default: ProcessGroup | None = None
    others: list[ProcessGroup] = []  # noqa: RUF012 - one job per process


def is_available() -> bool:
    """Return whether mpi4py, of the extra `mpi`, is installed."""
    return find_spec("mpi4py") is not None


is_mpi_available = is_gloo_available = is_available


def is_nccl_available() -> bool:
    """Return whether CuPy is installed and finds NCCL."""
    if find_spec("cupy") is None:
        return False
    try:
        return bool(importlib.import_module("cupy.cuda.nccl").available)
    except ImportError:
        return False


def is_torchelastic_launched() -> bool:
    """Return whether torchrun started the process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_initialized() -> bool:
    """Return whether the default process group is initialised."""
    return _Job.default is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: None = None,
    device_id: Any = None,
) -> None:
    """Join the processes started by `mpiexec` or `python -m tallow.distributed.run`. All of them must call it.

    From then on, an uncaught exception in this process ends the whole job.

    Args:
        backend: "mpi" for CPU tensors, "nccl" for GPU tensors, None for both; "gloo" means "mpi".
        init_method: "env://" (as None), "tcp://..." or "file://...". MPI has already connected the processes, so the
            address is not used. The rank and size given by it must match those of MPI: RANK and WORLD_SIZE in the
            environment if set, or `?rank=0&world_size=4` in the URL.
        timeout: maximum time to wait for other processes; half an hour by default.
        world_size, rank: must match those of MPI; -1 to take them from the URL or the environment.
        store: as an address in `init_method`, in whose place it is: MPI has already connected the processes. It needs
            world_size and rank.
        pg_options: must be None.
        group_name: ignored, as in PyTorch.
        device_id: the GPU of this process, with an index: NCCL starts on it at once, not on first use.

    Raises:  MissingPackageError, DeviceError; ArgumentError on a second call, or if world_size or rank do not match MPI
    """
    if _Job.default is not None:
        raise ArgumentError("trying to initialize the default process group twice!")
    if pg_options is not None:
        raise ArgumentError(
            "init_process_group: pg_options is for PyTorch's backends; tallow uses MPI and NCCL", hint="omit it"
        )
    device = None if device_id is None else devices.device(device_id)
    if device is not None and device.type != "cpu":
        if device.index is None:
            raise ArgumentError(f"init_process_group: device_id={str(device)!r} has no index", hint="use 'cuda:0'")
        backend = "nccl" if backend is None else backend
    job = world()
    check_job(job, init_method, world_size, rank, store)
    group = ProcessGroup(range(job.size), backend, timeout)
    if device is not None and device.type != "cpu":
        group.bind(device)
    _Job.default = group


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Close a group, or all of them. Wait for all started operations first."""
    if group is None or group is _Job.default:
        for each in (*_Job.others, member(None)):
            each.close()
        _Job.others.clear()
        _Job.default = None
    else:
        _Job.others.remove(group)
        group.close()


def member(group: Any) -> ProcessGroup:
    """Return the group, or the default one for None.

    Raises:  ArgumentError if there is none, or this process is not in it
    """
    group = _Job.default if group is None else group
    if group is None:
        raise ArgumentError("default process group has not been initialized, please call init_process_group")
    if not isinstance(group, ProcessGroup):
        raise ArgumentError("this process is not in the group", hint="check get_rank(group) >= 0 first")
    return group


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None) -> Any:
    """Create a group of ranks of the job, None for all. Members must create groups in the same order.

    Returns:  GroupMember.NON_GROUP_MEMBER in the other processes
    """
    default = member(None)
    ranks = default.ranks if ranks is None else sorted(ranks)
    for rank in ranks:
        default.index(rank, "new_group")
    if default.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    new = ProcessGroup(ranks, backend or default.name(), default.timeout if timeout is None else timeout)
    _Job.others.append(new)
    return new


def get_rank(group: Any = None) -> int:
    """Return the rank of this process in the group; -1 if it is not a member."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else member(group).rank()


def get_world_size(group: Any = None) -> int:
    """Return the number of processes in the group; -1 if this one is not a member."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else member(group).size()


def get_pg_count() -> int:
    """Return the number of groups that this process is in."""
    return len(_Job.others) + (_Job.default is not None)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank of this process on its machine, as the environment variable LOCAL_RANK says.

    Raises:  ArgumentError if it is not set, unless there is a fallback
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise ArgumentError("LOCAL_RANK is not in the environment", hint="pass fallback_rank")
    return int(fallback_rank)


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name of the group's backend."""
    return member(group).name()


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the ranks of the members in the job."""
    return list(member(group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the job of a rank in the group."""
    if not 0 <= group_rank < group.size():
        raise ArgumentError(f"group_rank {group_rank} in a group of {group.size()}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in the group of a rank in the job."""
    return group.index(global_rank, "global_rank")

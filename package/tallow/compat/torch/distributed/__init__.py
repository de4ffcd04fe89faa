"""Names of `torch.distributed` that tallow itself does not have."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from tallow import distributed
from tallow.compat.absent import absent
from tallow.distributed import groups
from tallow.errors import ArgumentError

__all__ = [
    "Backend",
    "DebugLevel",
    "DistBackendError",
    "GradBucket",
    "GroupMember",
    "all_gather_single",
    "get_debug_level",
    "get_default_backend_for_device",
    "group",
    "is_backend_available",
    "is_ucc_available",
    "is_xccl_available",
    "monitored_barrier",
    "reduce_op",
    "reduce_scatter_single",
    "set_debug_level",
    "set_debug_level_from_env",
    "shrink_group",
    "split_group",
    "supports_complex",
]

all_gather_single, reduce_scatter_single = distributed.all_gather_into_tensor, distributed.reduce_scatter_tensor
GradBucket = absent("torch.distributed.GradBucket", "use DistributedDataParallel without communication hooks")
shrink_group = absent("torch.distributed.shrink_group", "a failure ends the job: start it again from a checkpoint")


class DistBackendError(distributed.DistError):
    """An error of the library that moves tensors. Errors here are of the class DistError."""


class DebugLevel(Enum):
    """The checks of collectives. They are always made here."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level() -> DebugLevel:
    """Return DETAIL: ranks that call different collectives raise an error."""
    return DebugLevel.DETAIL


def set_debug_level(debug_level: DebugLevel) -> None:
    """Do nothing: the checks are always made."""


def set_debug_level_from_env() -> None:
    """Do nothing: the checks are always made."""


def supports_complex(reduceOp: Any) -> bool:
    """Return whether an op reduces complex numbers: not those of an order, or of bits."""
    return reduceOp in (distributed.ReduceOp.SUM, distributed.ReduceOp.AVG)


def split_group(parent_pg: Any = None, split_ranks: Any = None, timeout: Any = None, backend: Any = None) -> Any:
    """Divide a group by lists of its ranks. Return the part of this process, or None. Raises: ArgumentError"""
    if not split_ranks:
        raise ArgumentError("split_ranks cannot be None or empty")
    parent = groups.member(parent_pg)
    lists = [[parent.ranks[rank] for rank in ranks] for ranks in split_ranks]
    own, _ = distributed.new_subgroups_by_enumeration(lists, timeout, backend)
    return None if _rank_not_in_group(own) else own


reduce_op = distributed.ReduceOp


class _Groups(type):
    """The class of `group`, whose attribute WORLD is the group of all processes."""

    @property
    def WORLD(cls) -> Any:
        """The group of all processes; None before init_process_group."""
        return groups._Job.default


class group(metaclass=_Groups):
    """The group of all processes, and the value in the place of one for processes outside of it."""

    NON_GROUP_MEMBER = groups.GroupMember.NON_GROUP_MEMBER


GroupMember = group


class Backend(str):
    """The name of a backend, in small letters.

    Raises: ArgumentError for anything but a text.
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ArgumentError(f"Backend constructor parameter must be string-ish, got {name!r}")
        return super().__new__(cls, name.lower())


def get_default_backend_for_device(device: Any) -> str:
    """Return the backend that sends the tensors of a device."""
    return Backend.default_device_backend_map[str(device).partition(":")[0]]


def is_backend_available(backend: str) -> bool:
    """Return whether there is a backend of this name."""
    check = getattr(distributed, f"is_{backend.lower()}_available", None)
    return check is not None and bool(check())


def is_ucc_available() -> bool:
    """Return False: there is no UCC."""
    return False


def is_xccl_available() -> bool:
    """Return False: there is no XCCL."""
    return False


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for all processes of a group, as `barrier`."""
    distributed.barrier(group)


def _rank_not_in_group(group: Any) -> bool:
    return group is groups.GroupMember.NON_GROUP_MEMBER

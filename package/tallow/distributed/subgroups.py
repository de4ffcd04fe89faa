"""Groups that divide the processes of a job, and grids of processes, as torch.distributed and its device_mesh."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.distributed.groups import GroupMember, ProcessGroup, get_rank, get_world_size, member, new_group
from tallow.errors import ArgumentError

Groups = tuple[Any, list[Any]]


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None
) -> Groups:
    """Create a group for each of several lists of ranks. Return the group of this process, and all of them.

    Groups of other processes are GroupMember.NON_GROUP_MEMBER; so is the first value in a process that is in no list.

    Raises: ArgumentError for a rank in two lists
    """
    flat = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(flat) != len(set(flat)):
        twice = next(rank for rank in flat if flat.count(rank) > 1)
        raise ArgumentError(f"new_subgroups_by_enumeration: rank {twice} is in two subgroups")
    groups = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    outside = GroupMember.NON_GROUP_MEMBER
    return next((group for group in groups if group is not outside), outside), groups


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
) -> Groups:
    """Divide the processes of a group, the default one for None, into groups of consecutive ranks.

    Args:
        group_size: processes in each; None means those on this machine, as `LOCAL_WORLD_SIZE` says.

    Raises: ArgumentError unless it divides the number of processes
    """
    ranks = member(group).ranks
    size = int(os.environ.get("LOCAL_WORLD_SIZE", len(ranks))) if group_size is None else group_size
    if size < 1 or len(ranks) % size:
        raise ArgumentError(
            f"new_subgroups: the world size {len(ranks)} must be divisible by group_size={size}",
            hint="new_subgroups_by_enumeration takes groups of any sizes",
        )
    parts = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend)


class DeviceMesh:
    """A grid of processes, with a group along each of its dims.

    Args:
        device_type: the device of their tensors, such as "cpu".
        mesh: the ranks of the processes; every process of the job passes the same.
        mesh_dim_names: a name for each dim.

    Raises: ArgumentError for a rank in two places, or another number of names than dims
    """

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None) -> None:
        ranks = np.asarray(mesh.numpy() if isinstance(mesh, Tensor) else mesh, np.int64)
        if ranks.size != np.unique(ranks).size:
            raise ArgumentError(f"DeviceMesh: a rank is in two places of {ranks.tolist()}")
        if mesh_dim_names is not None and len(mesh_dim_names) != ranks.ndim:
            raise ArgumentError(f"DeviceMesh: mesh_dim_names {tuple(mesh_dim_names)} for a mesh of {ranks.ndim} dims")
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._ranks = ranks
        at = np.argwhere(ranks == get_rank())
        self._place = [int(i) for i in at[0]] if len(at) else None
        self._groups = [self._group_along(dim) for dim in range(ranks.ndim)]

    def _group_along(self, dim: int) -> Any:
        """Return the group of the processes that differ from this one along a dim only."""
        if self._place is None:
            return GroupMember.NON_GROUP_MEMBER
        index: list[Any] = list(self._place)
        index[dim] = slice(None)
        ranks = self._ranks[tuple(index)].tolist()
        return member(None) if ranks == member(None).ranks else new_group(ranks)

    @property
    def mesh(self) -> Tensor:
        """The ranks of the processes."""
        return wrap(self._ranks).to(dtypes.int32)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of processes along each dim."""
        return self._ranks.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of processes, or that along a dim."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim]

    def get_rank(self) -> int:
        """Return the rank of this process in the job."""
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Return the place of this process in the mesh; None if it is not in it."""
        return None if self._place is None else list(self._place)

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the place of this process along a dim, which a mesh of one dim need not name."""
        dim = self._dim(mesh_dim)
        if self._place is None:
            raise ArgumentError("DeviceMesh: this process is not in the mesh")
        return self._place[dim]

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """Return the group along a dim, which a mesh of one dim need not name."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """Return the groups along all dims."""
        return list(self._groups)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the mesh of the processes that differ from this one along the named dims only."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        dims = [self._dim(name) for name in names]
        if self._place is None or dims != sorted(set(dims)):
            raise ArgumentError(f"DeviceMesh: {names} must be dims in the order of {self.mesh_dim_names}")
        part: DeviceMesh = object.__new__(DeviceMesh)
        part.device_type, part.mesh_dim_names = self.device_type, names
        part._ranks = self._ranks[tuple(slice(None) if d in dims else self._place[d] for d in range(self.ndim))]
        part._place, part._groups = [self._place[d] for d in dims], [self._groups[d] for d in dims]
        return part

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise ArgumentError(f"Found the DeviceMesh have {self.ndim} dimensions", hint="name a dim: mesh_dim=0")
            return 0
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise ArgumentError(f"DeviceMesh: no dim is named {mesh_dim!r}; the names are {self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    def __len__(self) -> int:
        return len(self._ranks)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a DeviceMesh is not iterable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.device_type, self.mesh_dim_names, self.shape, self._ranks.tobytes()

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self._ranks.tolist()}{names})"


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """Return a mesh of this shape with all processes, in the order of their ranks.

    Raises: ArgumentError unless the shape has as many places as there are processes
    """
    count = int(np.prod(mesh_shape))
    if count != get_world_size():
        raise ArgumentError(f"init_device_mesh: {mesh_shape} has {count} places for {get_world_size()} processes")
    return DeviceMesh(device_type, np.arange(count).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)

"""Objects between processes, under torch.distributed's names. They travel by MPI, whatever the group's backend.

What is sent is what `tallow.save` writes as PyTorch's format: None, truth values, numbers, strings, bytes, tensors,
dtypes, devices and sizes, and lists, tuples, dicts, sets, OrderedDicts and Counters of them. PyTorch takes all that can
be pickled, and the receiver runs what the pickle says; here the receiver runs nothing. An array of NumPy's goes as
`tl.from_numpy(array)`, and an object of a class of one's own as its `__dict__`. Tensors arrive on the CPU.

An object that cannot be sent is an ArgumentTypeError in its own process, and a DistributedError in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.distributed.groups import ProcessGroup, member
from tallow.errors import ArgumentError, DistributedError, TallowError
from tallow.io import pytorch, pytorch_write

REFUSED = -1  # in place of a size: the object cannot be sent

Bytes = npt.NDArray[np.uint8]


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: ProcessGroup | None = None, device: Any = None
) -> None:
    """Replace the objects of every rank's list, which are as many everywhere, by those of `src`."""
    everybody = member(group)
    root = everybody.index(src, "src")
    is_root = everybody.rank() == root
    everybody.mpi.agree(f"broadcast_object_list from {src}, {len(object_list)} objects").wait()
    parcel = _Parcel([object_list] if is_root else [])
    sizes = parcel.sizes(1)
    everybody.mpi.broadcast(sizes, root).wait()
    parcel.check(sizes, [src])
    data = parcel.parts[0] if is_root else np.empty(sizes[0], np.uint8)
    everybody.mpi.broadcast(data, root).wait()
    if not is_root:
        object_list[:] = _read(data)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write the objects of all ranks to the list, in their order."""
    everybody = member(group)
    _check_length(object_list, everybody, "all_gather_object")
    everybody.mpi.agree("all_gather_object").wait()
    parcel = _Parcel([obj])
    sizes = _everybodys_sizes(parcel, everybody)
    rows = np.empty((everybody.size(), sizes.max()), np.uint8)
    everybody.mpi.all_gather(rows, parcel.rows(sizes.max())).wait()
    object_list[:] = _read_rows(rows, sizes)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: ProcessGroup | None = None
) -> None:
    """Write the objects of all ranks to the list of `dst`; the other ranks have none."""
    everybody = member(group)
    root = _root_with_list(object_gather_list, dst, everybody, "gather_object")
    everybody.mpi.agree(f"gather_object to {dst}").wait()
    parcel = _Parcel([obj])
    sizes = _everybodys_sizes(parcel, everybody)
    rows = None if object_gather_list is None else np.empty((everybody.size(), sizes.max()), np.uint8)
    everybody.mpi.gather(rows, parcel.rows(sizes.max()), root).wait()
    if object_gather_list is not None:
        object_gather_list[:] = _read_rows(rows, sizes)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
) -> None:
    """Write to the first place of each rank's output list its object of the input list of `src`; others have none."""
    if not scatter_object_output_list:
        raise ArgumentError("scatter_object_list: an empty output list", mend="pass [None]")
    everybody = member(group)
    root = _root_with_list(scatter_object_input_list, src, everybody, "scatter_object_list")
    everybody.mpi.agree(f"scatter_object_list from {src}").wait()
    parcel = _Parcel(scatter_object_input_list or ())
    sizes = parcel.sizes(everybody.size())
    everybody.mpi.broadcast(sizes, root).wait()
    parcel.check(sizes, [src])
    mine = np.empty(sizes.max(), np.uint8)
    rows = None if scatter_object_input_list is None else parcel.rows(sizes.max())
    everybody.mpi.scatter(mine, rows, root).wait()
    scatter_object_output_list[0] = _read(mine[: sizes[everybody.rank()]])


class _Parcel:
    """Objects as bytes, each in an array of its own; or the reason why they cannot be sent."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self.parts: list[Bytes] = []
        self._error: TallowError | None = None
        try:
            self.parts = [_written(each) for each in objects]
        except TallowError as error:  # the others are told before it rises
            self._error = error

    def sizes(self, count: int) -> npt.NDArray[np.int64]:
        """Of the parts, to be sent ahead; there is room for `count`."""
        sizes = [part.size for part in self.parts] or [REFUSED] * count
        return np.array(sizes, np.int64)

    def check(self, sizes: npt.NDArray[np.int64], senders: Sequence[int]) -> None:
        """Raises:  what was wrong with this process's objects; DistributedError for another's"""
        if self._error is not None:
            raise self._error
        refused = [rank for rank, size in zip(senders, sizes, strict=False) if size == REFUSED]
        if refused:
            raise DistributedError(f"rank {', '.join(map(str, refused))} has an object that cannot be sent")

    def rows(self, width: int) -> Bytes:
        """The parts one below the other, filled up to one width."""
        rows = np.zeros((len(self.parts), width), np.uint8)
        for row, part in zip(rows, self.parts, strict=True):
            row[: part.size] = part
        return rows


def _everybodys_sizes(parcel: _Parcel, group: ProcessGroup) -> npt.NDArray[np.int64]:
    sizes = np.empty(group.size(), np.int64)
    group.mpi.all_gather(sizes, parcel.sizes(1)).wait()
    parcel.check(sizes, group.ranks)
    return sizes


def _written(obj: Any) -> Bytes:
    file = BytesIO()
    pytorch_write.save(obj, file)
    return np.frombuffer(file.getvalue(), np.uint8).copy()  # MPI takes what can be written to


def _read(data: Bytes) -> Any:
    return pytorch.load(data.tobytes(), map_location="cpu")


def _read_rows(rows: Bytes | None, sizes: npt.NDArray[np.int64]) -> list[Any]:
    return [_read(row[:size]) for row, size in zip(() if rows is None else rows, sizes, strict=True)]


def _check_length(objects: Sequence[Any], group: ProcessGroup, name: str) -> None:
    if len(objects) != group.size():
        raise ArgumentError(f"{name}: a list of {len(objects)} objects for {group.size()} ranks")


def _root_with_list(objects: Sequence[Any] | None, root: int, group: ProcessGroup, name: str) -> int:
    """The root's rank in the group; it alone has the list."""
    index = group.index(root, name)
    if (objects is not None) != (group.rank() == index):
        raise ArgumentError(f"{name}: rank {root} passes the list of objects, and nobody else does")
    if objects is not None:
        _check_length(objects, group, name)
    return index

"""Send objects between processes, with torch.distributed's names. They are sent by MPI with every backend.

Objects are sent in the format of `tallow.save`: None, booleans, numbers, strings, bytes, tensors, dtypes, devices and
sizes, and lists, tuples, dicts, sets, OrderedDicts and Counters of them. PyTorch sends anything that can be pickled,
and the receiver runs the pickle's code; here the receiver runs no code. Send a NumPy array as `tl.from_numpy(array)`,
and an object of your own class as its `__dict__`. Tensors arrive on the CPU.

An object that cannot be sent raises ArgumentTypeError in its own process, and DistributedError in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import wrap
from tallow.distributed.collectives import recv, send
from tallow.distributed.groups import ProcessGroup, member
from tallow.errors import ArgumentError, DistributedError, TallowError
from tallow.io import pytorch, pytorch_write

NOT_SENDABLE = -1  # instead of a size: the object cannot be sent

Bytes = npt.NDArray[np.uint8]


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: ProcessGroup | None = None, device: Any = None
) -> None:
    """Copy the objects in the list of `src` to the lists of all ranks, which must have the same length."""
    process_group = member(group)
    root = process_group.index(src, "src")
    is_root = process_group.rank() == root
    process_group.mpi.agree(f"broadcast_object_list from {src}, {len(object_list)} objects").wait()
    parcel = _EncodedObjects([object_list] if is_root else [])
    sizes = parcel.sizes(1)
    process_group.mpi.broadcast(sizes, root).wait()
    parcel.check(sizes, [src])
    data = parcel.parts[0] if is_root else np.empty(sizes[0], np.uint8)
    process_group.mpi.broadcast(data, root).wait()
    if not is_root:
        object_list[:] = _decode(data)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Copy the objects of all ranks to the list, in rank order."""
    process_group = member(group)
    _check_length(object_list, process_group, "all_gather_object")
    process_group.mpi.agree("all_gather_object").wait()
    parcel = _EncodedObjects([obj])
    sizes = _all_sizes(parcel, process_group)
    rows = np.empty((process_group.size(), sizes.max()), np.uint8)
    process_group.mpi.all_gather(rows, parcel.rows(sizes.max())).wait()
    object_list[:] = _read_rows(rows, sizes)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: ProcessGroup | None = None
) -> None:
    """Copy the objects of all ranks to the list of `dst`; other ranks pass no list."""
    process_group = member(group)
    root = _root_with_list(object_gather_list, dst, process_group, "gather_object")
    process_group.mpi.agree(f"gather_object to {dst}").wait()
    parcel = _EncodedObjects([obj])
    sizes = _all_sizes(parcel, process_group)
    rows = None if object_gather_list is None else np.empty((process_group.size(), sizes.max()), np.uint8)
    process_group.mpi.gather(rows, parcel.rows(sizes.max()), root).wait()
    if object_gather_list is not None:
        object_gather_list[:] = _read_rows(rows, sizes)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
) -> None:
    """Store in each rank's output list its object of the input list of `src`; other ranks pass no input list."""
    if not scatter_object_output_list:
        raise ArgumentError("scatter_object_list: an empty output list", hint="pass [None]")
    process_group = member(group)
    root = _root_with_list(scatter_object_input_list, src, process_group, "scatter_object_list")
    process_group.mpi.agree(f"scatter_object_list from {src}").wait()
    parcel = _EncodedObjects(scatter_object_input_list or ())
    sizes = parcel.sizes(process_group.size())
    process_group.mpi.broadcast(sizes, root).wait()
    parcel.check(sizes, [src])
    received = np.empty(sizes.max(), np.uint8)
    rows = None if scatter_object_input_list is None else parcel.rows(sizes.max())
    process_group.mpi.scatter(received, rows, root).wait()
    scatter_object_output_list[0] = _decode(received[: sizes[process_group.rank()]])


def send_object_list(
    object_list: Sequence[Any], dst: int, group: ProcessGroup | None = None, device: Any = None
) -> None:
    """Send objects to a rank, which calls `recv_object_list` with a list of the same length."""
    parcel = _EncodedObjects([list(object_list)])
    sizes = parcel.sizes(1)
    send(wrap(sizes), dst, group)
    parcel.check(sizes, [member(group).ranks[member(group).rank()]])
    send(wrap(parcel.parts[0]), dst, group)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None, device: Any = None
) -> int:
    """Receive objects into a list from a rank, or from any rank, and return the sender's rank."""
    sizes = np.empty(1, np.int64)
    sender = recv(wrap(sizes), src, group)
    if sizes[0] == NOT_SENDABLE:
        raise DistributedError(f"rank {sender} has an object that cannot be sent")
    data = np.empty(sizes[0], np.uint8)
    recv(wrap(data), sender, group)
    objects = _decode(data)
    if len(objects) != len(object_list):
        raise ArgumentError(f"recv_object_list: a list of {len(object_list)} for {len(objects)} objects")
    object_list[:] = objects
    return sender


class _EncodedObjects:
    """Objects encoded as arrays of bytes, or the error if they cannot be sent."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self.parts: list[Bytes] = []
        self._error: TallowError | None = None
        try:
            self.parts = [_encode(each) for each in objects]
        except TallowError as error:  # raised by `check`, after the other ranks are informed
            self._error = error

    def sizes(self, count: int) -> npt.NDArray[np.int64]:
        """Return the sizes of the parts, or `count` times NOT_SENDABLE. They are sent first."""
        sizes = [part.size for part in self.parts] or [NOT_SENDABLE] * count
        return np.array(sizes, np.int64)

    def check(self, sizes: npt.NDArray[np.int64], senders: Sequence[int]) -> None:
        """Check that all objects can be sent.

        Raises:  the error of this process's objects; DistributedError for those of another
        """
        if self._error is not None:
            raise self._error
        refused = [rank for rank, size in zip(senders, sizes, strict=False) if size == NOT_SENDABLE]
        if refused:
            raise DistributedError(f"rank {', '.join(map(str, refused))} has an object that cannot be sent")

    def rows(self, width: int) -> Bytes:
        """Return the parts as rows, padded to one width."""
        rows = np.zeros((len(self.parts), width), np.uint8)
        for row, part in zip(rows, self.parts, strict=True):
            row[: part.size] = part
        return rows


def _all_sizes(parcel: _EncodedObjects, group: ProcessGroup) -> npt.NDArray[np.int64]:
    sizes = np.empty(group.size(), np.int64)
    group.mpi.all_gather(sizes, parcel.sizes(1)).wait()
    parcel.check(sizes, group.ranks)
    return sizes


def _encode(obj: Any) -> Bytes:
    file = BytesIO()
    pytorch_write.save_plain(obj, file)
    return np.frombuffer(file.getvalue(), np.uint8).copy()  # MPI requires writable memory


def _decode(data: Bytes) -> Any:
    return pytorch.load(data.tobytes(), map_location="cpu")


def _read_rows(rows: Bytes | None, sizes: npt.NDArray[np.int64]) -> list[Any]:
    return [_decode(row[:size]) for row, size in zip(() if rows is None else rows, sizes, strict=True)]


def _check_length(objects: Sequence[Any], group: ProcessGroup, name: str) -> None:
    if len(objects) != group.size():
        raise ArgumentError(f"{name}: a list of {len(objects)} objects for {group.size()} ranks")


def _root_with_list(objects: Sequence[Any] | None, root: int, group: ProcessGroup, name: str) -> int:
    """Return the root's rank in the group; check that only the root passes a list."""
    index = group.index(root, name)
    if (objects is not None) != (group.rank() == index):
        raise ArgumentError(f"{name}: rank {root} must pass the list of objects, and no other rank")
    if objects is not None:
        _check_length(objects, group, name)
    return index

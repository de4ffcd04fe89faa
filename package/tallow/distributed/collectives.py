"""What the processes of a group do together, under torch.distributed's names.

All ranks of a group call the same functions in the same order, with tensors of the same sizes and dtypes; where they do
not, all of them raise DistributedError, which says who does what. `src` and `dst` are ranks in the job. With
`async_op=True` a function starts the operation and returns a `Work` to wait for. None of them is part of autograd's
graph; those of `tallow.nn.parallel` are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow.devices import array_module, device_type_of
from tallow.distributed.groups import Engine, ProcessGroup, member
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.work import Work
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from tallow.tensor import Tensor


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Replace the tensor of every rank by what `op` makes of all of them."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    return _together(
        group, f"all_reduce by {op.name}", tensor, lambda: engine.all_reduce(array, op).then(write_back), async_op
    )


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Replace the tensor of `dst` by what `op` makes of all of them."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    root = member(group).index(dst, "dst")
    said = f"reduce by {op.name} to {dst}"
    return _together(group, said, tensor, lambda: engine.reduce(array, root, op).then(write_back), async_op)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Replace the tensor of every rank by that of `src`."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    root = member(group).index(src, "src")
    said = f"broadcast from {src}"
    return _together(group, said, tensor, lambda: engine.broadcast(array, root).then(write_back), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into one, one after the other.

    Shapes:  input (N, ...); output (ranks · N, ...) or (ranks, N, ...)
    """
    engine = _engine(group, input_tensor)
    _check_parts(output_tensor, input_tensor, member(group), "all_gather_into_tensor")
    array, write_back = _in_place(output_tensor)
    given = _contiguous(input_tensor)
    return _together(
        group, "all_gather", input_tensor, lambda: engine.all_gather(array, given).then(write_back), async_op
    )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks to the tensors of the list, in the order of the ranks."""
    engine = _engine(group, tensor)
    joined = _room(tensor_list, tensor, member(group), "all_gather")
    given = _contiguous(tensor)

    def start() -> Work:
        return engine.all_gather(joined, given).then(lambda: _write(tensor_list, joined))

    return _together(group, "all_gather", tensor, start, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the tensors of all ranks, and leave each rank with its part.

    Shapes:  input (ranks · N, ...) or (ranks, N, ...); output (N, ...)
    """
    engine = _engine(group, input)
    _check_parts(input, output, member(group), "reduce_scatter_tensor")
    return _reduce_parts(engine, output, _contiguous(input), op, group, async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the lists of all ranks place by place, and leave each rank with what has become of its place."""
    engine = _engine(group, output)
    joined = _room(input_list, output, member(group), "reduce_scatter")
    for part, given in zip(joined, input_list, strict=True):
        part[...] = given.array
    return _reduce_parts(engine, output, joined, op, group, async_op)


def _reduce_parts(
    engine: Engine, output: Tensor, parts: Array, op: ReduceOp, group: ProcessGroup | None, async_op: bool
) -> Work | None:
    array, write_back = _in_place(output)
    return _together(
        group,
        f"reduce_scatter by {op.name}",
        output,
        lambda: engine.reduce_scatter(array, parts, op).then(write_back),
        async_op,
    )


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write the tensors of all ranks to the list of `dst`; the other ranks have none."""
    engine = _engine(group, tensor)
    root = _root_with_list(gather_list, dst, member(group), "gather")
    joined = None if gather_list is None else _room(gather_list, tensor, member(group), "gather")
    given = _contiguous(tensor)

    def start() -> Work:
        return engine.gather(joined, given, root).then(lambda: _write(gather_list or (), joined))

    return _together(group, f"gather to {dst}", tensor, start, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write to each rank's tensor its part of the list of `src`; the other ranks have none."""
    engine = _engine(group, tensor)
    root = _root_with_list(scatter_list, src, member(group), "scatter")
    joined = None if scatter_list is None else _room(scatter_list, tensor, member(group), "scatter")
    for part, given in zip(() if joined is None else joined, scatter_list or (), strict=True):
        part[...] = given.array
    array, write_back = _in_place(tensor)
    said = f"scatter from {src}"
    return _together(group, said, tensor, lambda: engine.scatter(array, joined, root).then(write_back), async_op)


def isend(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> Work:
    """Start to send a tensor to a rank."""
    engine = _engine(group, tensor)
    return engine.send(_contiguous(tensor), member(group).index(dst, "dst"), tag)


def irecv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> Work:
    """Start to receive a tensor from a rank, or from any; what is sent has the tensor's shape and dtype."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    source = None if src is None else member(group).index(src, "src")
    return engine.receive(array, source, tag).then(write_back)


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Send a tensor to a rank."""
    isend(tensor, dst, group, tag).wait()


def recv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> int:
    """Receive a tensor from a rank, or from any; the sender's rank."""
    work: Any = irecv(tensor, src, group, tag)
    work.wait()
    return member(group).ranks[work.source] if src is None else src


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Wait until all ranks have come here."""
    return _together(group, "barrier", None, member(group).mpi.barrier, async_op)


def _together(
    group: ProcessGroup | None, said: str, tensor: Tensor | None, start: Callable[[], Work], async_op: bool
) -> Work | None:
    """Start an operation that all ranks start, and wait for it unless `async_op`.

    Args:
        said: which operation it is, with whatever else must be the same everywhere.
        tensor: of which each rank has one of as many elements, with the same dtype and type of device.
    """
    mpi = member(group).mpi
    if tensor is not None:
        said = f"{said}, {tensor.numel()} of {tensor.dtype} on {device_type_of(tensor.array)}"
    if async_op:  # not to wait for the others here, as nobody expects
        check = mpi.agree(said, started=True)
        return start().after(check)
    mpi.agree(said).wait()
    start().wait()
    return None


# ------------------------------------------------------------------------------------------------------------- tensors


def _engine(group: ProcessGroup | None, tensor: Tensor) -> Engine:
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"expected a Tensor, got {type(tensor).__name__}")
    return member(group).engine(device_type_of(tensor.array))


def _contiguous(tensor: Tensor) -> Array:
    return array_module(tensor.array).ascontiguousarray(tensor.array)


def _in_place(tensor: Tensor) -> tuple[Array, Any]:
    """A contiguous array for what is written to the tensor, and how it gets from there to the tensor."""
    array = _contiguous(tensor)

    def write_back() -> None:
        if array is not tensor.array:
            tensor.array[...] = array.reshape(tensor.array.shape)

    return array, write_back


def _room(tensors: Sequence[Tensor], like: Tensor, group: ProcessGroup, name: str) -> Array:
    """An array with a row for each tensor of a list, which are all as `like`."""
    if len(tensors) != group.size():
        raise ArgumentError(f"{name}: a list of {len(tensors)} tensors for {group.size()} ranks")
    for tensor in tensors:
        _check_dtypes(tensor, like, name)
        if tensor.shape != like.shape:
            raise ShapeError(f"{name}: tensors of {tuple(tensor.shape)} and of {tuple(like.shape)}")
    array = like.array
    return array_module(array).empty((len(tensors), *array.shape), array.dtype)


def _write(tensors: Sequence[Tensor], rows: Array | None) -> None:
    for tensor, row in zip(tensors, () if rows is None else rows, strict=True):
        tensor.array[...] = row


def _check_parts(whole: Tensor, part: Tensor, group: ProcessGroup, name: str) -> None:
    _check_dtypes(whole, part, name)
    if whole.numel() != group.size() * part.numel():
        raise ShapeError(
            f"{name}: {tuple(whole.shape)} is not {group.size()} times {tuple(part.shape)}, for as many ranks"
        )


def _check_dtypes(a: Tensor, b: Tensor, name: str) -> None:
    if a.dtype is not b.dtype:
        raise DtypeError(f"{name}: tensors of {a.dtype} and of {b.dtype}")


def _root_with_list(tensors: Sequence[Tensor] | None, root: int, group: ProcessGroup, name: str) -> int:
    """The root's rank in the group; it alone has the list."""
    index = group.index(root, name)
    if (tensors is not None) != (group.rank() == index):
        raise ArgumentError(f"{name}: rank {root} passes the list of tensors, and nobody else does")
    return index

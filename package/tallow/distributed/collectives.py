"""Collective operations of a process group, with torch.distributed's names.

All ranks of a group must call the same functions in the same order, with tensors of the same sizes and dtypes; if not,
all of them raise DistributedError, which shows the calls of each. `src` and `dst` are ranks in the job. With
`async_op=True` a function starts the operation and returns a `Work` to wait for. The functions are not recorded by
autograd; those of `tallow.nn.parallel` are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.devices import array_module, device_type_of
from tallow.distributed.groups import Engine, ProcessGroup, member
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.work import NoWork, Work
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduce the tensors of all ranks with `op`, in place in every rank."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    return _collective(
        group, f"all_reduce by {op.name}", tensor, lambda: engine.all_reduce(array, op).then(write_back), async_op
    )


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduce the tensors of all ranks with `op`, in place in rank `dst`."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    root = member(group).index(dst, "dst")
    call = f"reduce by {op.name} to {dst}"
    return _collective(group, call, tensor, lambda: engine.reduce(array, root, op).then(write_back), async_op)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Copy the tensor of `src` to the tensor of every rank."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    root = member(group).index(src, "src")
    call = f"broadcast from {src}"
    return _collective(group, call, tensor, lambda: engine.broadcast(array, root).then(write_back), async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduce each of several tensors with `op`, in place in every rank."""
    return _last([all_reduce(tensor, op, group, async_op) for tensor in tensors])


def _last(works: Sequence[Work | None]) -> Work | None:
    """Return a work that is complete when all are."""
    last = None
    for work in works:
        last = work if last is None or work is None else work.after(last)
    return last


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Concatenate the tensors of all ranks in every rank.

    Shapes:  input (N, ...); output (ranks · N, ...) or (ranks, N, ...)
    """
    engine = _engine(group, input_tensor)
    _check_parts(output_tensor, input_tensor, member(group), "all_gather_into_tensor")
    array, write_back = _in_place(output_tensor)
    source = _contiguous(input_tensor)
    return _collective(
        group, "all_gather", input_tensor, lambda: engine.all_gather(array, source).then(write_back), async_op
    )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all ranks to the tensors of the list, in rank order."""
    engine = _engine(group, tensor)
    rows = _empty_rows(tensor_list, tensor, member(group), "all_gather")
    source = _contiguous(tensor)

    def start() -> Work:
        return engine.all_gather(rows, source).then(lambda: _write(tensor_list, rows))

    return _collective(group, "all_gather", tensor, start, async_op)


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copy the tensors of all ranks: list r of the outputs gets those of rank r."""
    by_input = zip(*output_tensor_lists, strict=True)
    pairs = zip(by_input, input_tensor_list, strict=True)
    return _last([all_gather(outputs, tensor, group, async_op) for outputs, tensor in pairs])


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the tensors of all ranks, and give each rank its part.

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
    """Reduce the lists of all ranks element by element, and give each rank its element."""
    engine = _engine(group, output)
    rows = _empty_rows(input_list, output, member(group), "reduce_scatter")
    for row, tensor in zip(rows, input_list, strict=True):
        row[...] = tensor.array
    return _reduce_parts(engine, output, rows, op, group, async_op)


def _reduce_parts(
    engine: Engine, output: Tensor, parts: Array, op: ReduceOp, group: ProcessGroup | None, async_op: bool
) -> Work | None:
    array, write_back = _in_place(output)
    return _collective(
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
    """Copy the tensors of all ranks to the list of `dst`; other ranks pass no list."""
    engine = _engine(group, tensor)
    root = _root_with_list(gather_list, dst, member(group), "gather")
    rows = None if gather_list is None else _empty_rows(gather_list, tensor, member(group), "gather")
    source = _contiguous(tensor)

    def start() -> Work:
        return engine.gather(rows, source, root).then(lambda: _write(gather_list or (), rows))

    return _collective(group, f"gather to {dst}", tensor, start, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copy to each rank's tensor its element of the list of `src`; other ranks pass no list."""
    engine = _engine(group, tensor)
    root = _root_with_list(scatter_list, src, member(group), "scatter")
    rows = None if scatter_list is None else _empty_rows(scatter_list, tensor, member(group), "scatter")
    for row, part in zip(() if rows is None else rows, scatter_list or (), strict=True):
        row[...] = part.array
    array, write_back = _in_place(tensor)
    call = f"scatter from {src}"
    return _collective(group, call, tensor, lambda: engine.scatter(array, rows, root).then(write_back), async_op)


def isend(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> Work:
    """Start sending a tensor to a rank."""
    engine = _engine(group, tensor)
    return engine.send(_contiguous(tensor), member(group).index(dst, "dst"), tag)


def irecv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> Work:
    """Start receiving a tensor from a rank, or from any rank; the sent tensor must have the same shape and dtype."""
    engine = _engine(group, tensor)
    array, write_back = _in_place(tensor)
    source = None if src is None else member(group).index(src, "src")
    return engine.receive(array, source, tag).then(write_back)


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Send a tensor to a rank."""
    isend(tensor, dst, group, tag).wait()


def recv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> int:
    """Receive a tensor from a rank, or from any rank, and return the sender's rank."""
    work: Any = irecv(tensor, src, group, tag)
    work.wait()
    return member(group).ranks[work.source] if src is None else src


class P2POp:
    """One sending or receiving of a list for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        peer: the rank to send to, or to receive from.
    """

    def __init__(
        self, op: Callable[..., Work], tensor: Tensor, peer: int, group: ProcessGroup | None = None, tag: int = 0
    ) -> None:
        if op not in (isend, irecv):
            raise ArgumentTypeError("P2POp: Invalid op: expected isend or irecv")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start all operations of a list, and return their works.

    The order is by peer, and of two ranks the lower one sends first: NCCL completes one after the other, so that two
    ranks which both began by receiving would wait forever.
    """

    def order(place: int) -> tuple[int, bool]:
        p = p2p_op_list[place]
        own = member(p.group)
        return p.peer, (p.op is isend) == (p.peer < own.ranks[own.rank()])

    works = {}
    for place in sorted(range(len(p2p_op_list)), key=order):
        p = p2p_op_list[place]
        works[place] = p.op(p.tensor, p.peer, p.group, p.tag)
    return [works[place] for place in range(len(works))]


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send to each rank its element of a list, and receive one from each, in rank order. Sizes may differ."""
    own = member(group)
    if len(output_tensor_list) != own.size() or len(input_tensor_list) != own.size():
        raise ArgumentError(
            f"all_to_all: lists of {len(output_tensor_list)} and {len(input_tensor_list)} for {own.size()} ranks"
        )
    rank, pairs = own.rank(), list(zip(own.ranks, output_tensor_list, input_tensor_list, strict=True))
    _, kept, given = pairs.pop(rank)
    _check_dtypes(kept, given, "all_to_all")
    if kept.numel() != given.numel():
        raise ShapeError(f"all_to_all: rank {rank} has {tuple(given.shape)} for itself, and {tuple(kept.shape)} for it")

    def start() -> Work:
        kept.array[...] = given.array.reshape(kept.array.shape)
        operations = [P2POp(irecv, output, peer, group) for peer, output, _ in pairs if output.numel()]
        operations += [P2POp(isend, input, peer, group) for peer, _, input in pairs if input.numel()]
        last: Work = NoWork()
        for work in batch_isend_irecv(operations):
            last = work.after(last)
        return last

    return _collective(group, "all_to_all", None, start, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send to each rank its part of the input along dim 0, and receive one from each; parts are equal by default.

    Raises:  ShapeError unless the parts add up to the tensors, and without sizes unless they are equal
    """
    lists = []
    for tensor, parts in ((output, output_split_sizes), (input, input_split_sizes)):
        ranks, length = member(group).size(), len(tensor)
        counts = [length // ranks] * ranks if not parts else list(parts)
        if len(counts) != ranks or sum(counts) != length:
            raise ShapeError(f"all_to_all_single: {length} rows do not divide into {counts}, for {ranks} ranks")
        lists.append(tensor.detach().split(counts))
    return all_to_all(lists[0], lists[1], group, async_op)


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Wait until all ranks reach this call."""
    return _collective(group, "barrier", None, member(group).mpi.barrier, async_op)


def _collective(
    group: ProcessGroup | None, call: str, tensor: Tensor | None, start: Callable[[], Work], async_op: bool
) -> Work | None:
    """Start an operation that all ranks must start, and wait for it unless `async_op`.

    Args:
        call: the operation and other arguments that must be equal in all ranks.
        tensor: the rank's tensor; its number of elements, dtype and device type must be equal in all ranks.
    """
    mpi = member(group).mpi
    if tensor is not None:
        call = f"{call}, {tensor.numel()} of {tensor.dtype} on {device_type_of(tensor.array)}"
    if async_op:  # an asynchronous call must not wait for the others
        check = mpi.agree(call, started=True)
        return start().after(check)
    mpi.agree(call).wait()
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
    """Return a contiguous array for results, and a function that writes it to the tensor."""
    array = _contiguous(tensor)

    def write_back() -> None:
        if array is not tensor.array:
            tensor.array[...] = array.reshape(tensor.array.shape)

    return array, write_back


def _empty_rows(tensors: Sequence[Tensor], like: Tensor, group: ProcessGroup, name: str) -> Array:
    """Return an array with a row for each tensor of a list, which must match `like`."""
    if len(tensors) != group.size():
        raise ArgumentError(f"{name}: a list of {len(tensors)} tensors for {group.size()} ranks")
    for tensor in tensors:
        _check_dtypes(tensor, like, name)
        if tensor.shape != like.shape:
            raise ShapeError(f"{name}: tensors of shapes {tuple(tensor.shape)} and {tuple(like.shape)}")
    array = like.array
    return array_module(array).empty((len(tensors), *array.shape), array.dtype)


def _write(tensors: Sequence[Tensor], rows: Array | None) -> None:
    for tensor, row in zip(tensors, () if rows is None else rows, strict=True):
        tensor.array[...] = row


def _check_parts(whole: Tensor, part: Tensor, group: ProcessGroup, name: str) -> None:
    _check_dtypes(whole, part, name)
    if whole.numel() != group.size() * part.numel():
        raise ShapeError(
            f"{name}: {tuple(whole.shape)} does not have {group.size()} times the elements of {tuple(part.shape)}, for "
            f"{group.size()} ranks"
        )


def _check_dtypes(a: Tensor, b: Tensor, name: str) -> None:
    if a.dtype is not b.dtype:
        raise DtypeError(f"{name}: tensors of {a.dtype} and {b.dtype}")


def _root_with_list(tensors: Sequence[Tensor] | None, root: int, group: ProcessGroup, name: str) -> int:
    """Return the root's rank in the group; check that only the root passes a list."""
    index = group.index(root, name)
    if (tensors is not None) != (group.rank() == index):
        raise ArgumentError(f"{name}: rank {root} must pass the list of tensors, and no other rank")
    return index

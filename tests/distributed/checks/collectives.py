"""tallow.distributed functions compared with NumPy on all ranks' data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.distributed as dist
from tallow.distributed import ReduceOp
from tallow.errors import ArgumentError, DeviceError, DtypeError, ShapeError

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint32", "uint8", "bool")


def input_of(rank: int, *shape: int, dtype: Any = tl.float32) -> tl.Tensor:
    """Return a rank's input; every rank can compute the input of every other."""
    return tl.from_numpy(np.random.default_rng(rank).integers(0, 6, shape)).to(dtype)


def all_inputs(*shape: int, dtype: Any = tl.float32) -> np.ndarray[Any, Any]:
    """Return the inputs of all ranks, stacked."""
    return np.stack([input_of(rank, *shape, dtype=dtype).numpy() for rank in range(dist.get_world_size())])


def check_all_reduce_of_every_dtype(folder: Path) -> None:
    for name in DTYPES:
        dtype = getattr(tl, name)
        x = input_of(dist.get_rank(), 2, 3, dtype=dtype)
        dist.all_reduce(x)
        assert x.dtype is dtype
        counts = all_inputs(2, 3, dtype=tl.int64)
        expected = counts.any(0) if dtype is tl.bool else counts.sum(0)
        np.testing.assert_array_equal(x.to(tl.int64).numpy(), expected, err_msg=name)


def check_sixteen_bits_are_rounded_once(folder: Path) -> None:
    n = dist.get_world_size()
    x = tl.tensor([256.0 if dist.get_rank() == 0 else 0.75], dtype=tl.bfloat16)
    dist.all_reduce(x)
    assert x.tolist() == tl.tensor([256 + 0.75 * (n - 1)]).to(tl.bfloat16).tolist()


def check_operations(folder: Path) -> None:
    all_of_them = all_inputs(5, dtype=tl.int64)
    floats: dict[ReduceOp, Any] = {
        ReduceOp.SUM: np.sum,
        ReduceOp.AVG: np.mean,
        ReduceOp.PRODUCT: np.prod,
        ReduceOp.MIN: np.min,
        ReduceOp.MAX: np.max,
    }
    for op, reduced in floats.items():
        x = input_of(dist.get_rank(), 5)
        dist.all_reduce(x, op)
        np.testing.assert_allclose(x.numpy(), reduced(all_of_them, axis=0), rtol=1e-6, err_msg=op.name)
    bits: dict[ReduceOp, Any] = {
        ReduceOp.BAND: np.bitwise_and,
        ReduceOp.BOR: np.bitwise_or,
        ReduceOp.BXOR: np.bitwise_xor,
    }
    for op, function in bits.items():
        for dtype in (tl.int64, tl.bool):
            x = input_of(dist.get_rank(), 5, dtype=dtype)
            dist.all_reduce(x, op)
            expected = function.reduce(all_inputs(5, dtype=dtype), axis=0)
            np.testing.assert_array_equal(x.numpy(), expected, err_msg=op.name)


def check_views_are_written_in_place(folder: Path) -> None:
    full = input_of(dist.get_rank(), 4, 6)
    untouched = full[:, 1::2].clone()
    dist.all_reduce(full[:, ::2].T)
    np.testing.assert_array_equal(full[:, ::2].numpy(), all_inputs(4, 6).sum(0)[:, ::2])
    assert tl.equal(full[:, 1::2], untouched)


def check_gathering(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    for dtype in (tl.float32, tl.bfloat16, tl.bool):
        mine = input_of(rank, 3, 2, dtype=dtype)
        full = tl.empty(n * 3, 2).to(dtype)
        dist.all_gather_into_tensor(full, mine)
        parts = [tl.empty(3, 2).to(dtype) for _ in range(n)]
        dist.all_gather(parts, mine)
        on_root = [tl.empty(3, 2).to(dtype) for _ in range(n)] if rank == n - 1 else None
        dist.gather(mine, on_root, dst=n - 1)
        expected = [input_of(each, 3, 2, dtype=dtype) for each in range(n)]
        assert all(map(tl.equal, parts, expected))
        assert tl.equal(full, tl.cat(expected))
        assert on_root is None or all(map(tl.equal, on_root, expected))


def check_reduce_scatter(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    for dtype in (tl.float32, tl.bfloat16):
        mine = input_of(rank, n, 3, dtype=dtype)
        expected = all_inputs(n, 3, dtype=tl.int64).sum(0)[rank]
        for output in (tl.empty(3).to(dtype), tl.empty(6).to(dtype)[::2]):
            dist.reduce_scatter_tensor(output, mine)
            np.testing.assert_array_equal(output.float().numpy(), expected)
        dist.reduce_scatter(output, list(mine), ReduceOp.AVG)
        np.testing.assert_array_equal(output.float().numpy(), tl.from_numpy(expected / n).to(dtype).float().numpy())


def check_roots(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    x = input_of(rank, 4)
    dist.broadcast(x, src=n - 1)
    assert tl.equal(x, input_of(n - 1, 4))
    x = input_of(rank, 4)
    dist.reduce(x, dst=n - 1)
    expected = all_inputs(4).sum(0) if rank == n - 1 else input_of(rank, 4).numpy()
    np.testing.assert_array_equal(x.numpy(), expected)
    parts = [input_of(each, 4) for each in range(n)] if rank == n - 1 else None
    dist.scatter(x, parts, src=n - 1)
    assert tl.equal(x, input_of(rank, 4))


def check_messages(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    before, after = (rank - 1) % n, (rank + 1) % n
    sent = [dist.isend(input_of(rank, 3), after, tag=7), dist.isend(input_of(rank, 2), after)]
    buffer = tl.empty(2)
    assert dist.recv(buffer) == before  # from any source, with an unused tag
    assert tl.equal(buffer, input_of(before, 2))
    buffer = tl.empty(6)
    dist.irecv(buffer[::2], before, tag=7).wait()
    assert tl.equal(buffer[::2], input_of(before, 3))
    assert all(work.wait() and work.is_completed() for work in sent)


def check_several_at_once(folder: Path) -> None:
    tensors = [input_of(dist.get_rank(), size) for size in (1, 1000, 10)]
    works = [dist.all_reduce(each, async_op=True) for each in tensors]
    for work in reversed(works):
        assert work is not None
        work.wait()
    for each in tensors:
        np.testing.assert_array_equal(each.numpy(), all_inputs(len(each)).sum(0))


def check_groups(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    ends = dist.new_group([n - 1, 0])
    if rank not in (0, n - 1):
        assert ends is dist.GroupMember.NON_GROUP_MEMBER
        assert dist.get_rank(ends) == dist.get_world_size(ends) == -1
        with pytest.raises(ArgumentError, match="not in the group"):
            dist.all_reduce(tl.ones(1), group=ends)
        return
    assert dist.get_process_group_ranks(ends) == [0, n - 1]
    assert dist.get_world_size(ends) == 2
    assert dist.get_global_rank(ends, dist.get_rank(ends)) == rank
    assert dist.get_group_rank(ends, rank) == dist.get_rank(ends)
    x = tl.full((2,), float(rank))
    dist.broadcast(x, src=n - 1, group=ends)  # a rank in the job, but not in the group
    assert x.tolist() == [n - 1, n - 1]
    dist.all_reduce(x, group=ends)
    assert x.tolist() == [2 * (n - 1)] * 2
    dist.barrier(ends)
    dist.destroy_process_group(ends)


def check_mistakes(folder: Path) -> None:
    n = dist.get_world_size()
    x = tl.ones(3)
    with pytest.raises(ArgumentError, match="twice"):
        dist.init_process_group()
    with pytest.raises(ArgumentError, match=rf"a list of 1 tensors for {n} ranks"):
        dist.all_gather([tl.ones(3)], x)
    with pytest.raises(ShapeError, match=r"tensors of shapes \(2,\) and \(3,\)"):
        dist.all_gather([tl.ones(2)] * n, x)
    with pytest.raises(DtypeError, match=r"float64 and tallow\.float32"):
        dist.all_gather_into_tensor(tl.ones(n * 3).double(), x)
    with pytest.raises(ShapeError, match=rf"\(4,\) does not have {n} times"):
        dist.reduce_scatter_tensor(x, tl.ones(4))
    with pytest.raises(ArgumentError, match=rf"src: rank {n} is not in the group"):
        dist.broadcast(x, src=n)
    with pytest.raises(DtypeError, match=r"BXOR does not support tensors of tallow\.float32"):
        dist.all_reduce(x, ReduceOp.BXOR)
    with pytest.raises(DtypeError, match=r"AVG does not support tensors of tallow\.int64"):
        dist.all_reduce(tl.ones(3).long(), ReduceOp.AVG)
    with pytest.raises(DeviceError, match="does not support tensors of device 'meta'"):
        dist.all_reduce(tl.ones(3, device="meta"))
    with pytest.raises(TypeError, match="expected a Tensor, got list"):
        dist.all_reduce([1.0])  # type: ignore[arg-type]


def check_that_a_group_can_be_made_anew(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="not been initialized"):
        dist.get_rank()
    with pytest.raises(ArgumentError, match=rf"world_size={n + 1}, but MPI has {n}"):
        dist.init_process_group(world_size=n + 1)
    with pytest.raises(ArgumentError, match="unknown backend 'smoke'"):
        dist.init_process_group("smoke")
    dist.init_process_group("nccl")
    with pytest.raises(DeviceError, match="'nccl' does not support tensors of device 'cpu'"):
        dist.all_reduce(tl.ones(1))
    dist.destroy_process_group()
    dist.init_process_group("gloo", "env://", world_size=n, rank=rank)
    assert dist.get_backend() == "mpi"
    dist.destroy_process_group()
    dist.init_process_group()


def check_all_to_all(folder: Path) -> None:
    n, rank = dist.get_world_size(), dist.get_rank()
    inputs = [tl.full((peer + 1, 2), 10.0 * rank + peer) for peer in range(n)]
    for is_async in (False, True):
        outputs = [tl.zeros(rank + 1, 2) for _ in range(n)]
        work = dist.all_to_all(outputs, inputs, async_op=is_async)
        assert (work is not None) == is_async
        if work is not None:
            work.wait()
        for peer, output in enumerate(outputs):
            np.testing.assert_array_equal(output.numpy(), np.full((rank + 1, 2), 10.0 * peer + rank))
    x, y = tl.arange(n) + n * rank, tl.zeros(n, dtype=tl.int64)
    dist.all_to_all_single(y, x)
    assert y.tolist() == [n * peer + rank for peer in range(n)]
    counts = [rank + peer for peer in range(n)]  # none from rank 0 to itself
    y = tl.zeros(sum(counts))
    dist.all_to_all_single(y, tl.full((sum(counts),), float(rank)), counts, counts)
    assert y.tolist() == [float(peer) for peer in range(n) for _ in range(rank + peer)]
    counts = [min(rank, peer) for peer in range(n)]  # rank 0 takes no part
    y = tl.zeros(sum(counts))
    dist.all_to_all_single(y, tl.full((sum(counts),), float(rank)), counts, counts)
    assert y.tolist() == [float(peer) for peer in range(n) for _ in range(counts[peer])]
    with pytest.raises(ShapeError, match="rows do not divide"):
        dist.all_to_all_single(tl.zeros(n + 1), tl.zeros(n))
    with pytest.raises(ArgumentError, match="for "):
        dist.all_to_all([], inputs)


def check_batch_isend_irecv(folder: Path) -> None:
    n, rank = dist.get_world_size(), dist.get_rank()
    got = tl.zeros(2)
    ops = [
        dist.P2POp(dist.isend, tl.full((2,), float(rank)), (rank + 1) % n),
        dist.P2POp(dist.irecv, got, (rank - 1) % n),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert got.tolist() == [float((rank - 1) % n)] * 2
    with pytest.raises(TypeError, match="Invalid op"):
        dist.P2POp(dist.broadcast, got, 0)

"""Objects sent between ranks, and detection of ranks that call different operations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tallow as tl
import tallow.distributed as dist
from tallow.errors import ArgumentError, ArgumentTypeError, DistributedError


def message(rank: int) -> dict[str, Any]:
    """Return an object whose length differs in each rank."""
    return {
        "rank": rank,
        "name": "x" * 100 * rank,
        "pair": (None, 1.5, b"\0"),
        "counts": Counter(a=rank),
        (1, 2): {True},
    }


def check_objects_arrive_unchanged(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    everybodys = [message(each) for each in range(n)]
    got: list[Any] = [None] * n
    dist.all_gather_object(got, message(rank))
    assert got == everybodys
    on_root: list[Any] | None = [None] * n if rank == n - 1 else None
    dist.gather_object(message(rank), on_root, dst=n - 1)
    assert on_root in (None, everybodys)
    objects = [message(rank), "mine"]
    dist.broadcast_object_list(objects, src=n - 1)
    assert objects == [message(n - 1), "mine"]
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, everybodys if rank == 0 else None)
    assert mine == [message(rank)]


def check_tensors_in_objects(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    got: list[Any] = [None] * n
    dist.all_gather_object(got, {"x": tl.full((rank, 2), float(rank)).bfloat16()})
    for each, state in enumerate(got):
        assert state["x"].dtype is tl.bfloat16
        assert tl.equal(state["x"], tl.full((each, 2), float(each)).bfloat16())


class Dangerous:
    def __reduce__(self) -> Any:
        return print, ("this was run",)


def check_that_nothing_is_run(folder: Path) -> None:
    """One rank's object cannot be sent: all ranks raise and can continue."""
    rank, n = dist.get_rank(), dist.get_world_size()
    expected: Any = ArgumentTypeError if rank == 1 else DistributedError
    match = "cannot save" if rank == 1 else "rank 1 has an object that cannot be sent"
    with pytest.raises(expected, match=match):
        dist.all_gather_object([None] * n, Dangerous() if rank == 1 else "fine")
    with pytest.raises(expected, match=match):
        dist.broadcast_object_list([Dangerous() if rank == 1 else "fine"], src=1)
    with pytest.raises(expected, match=match):
        dist.scatter_object_list([None], [Dangerous()] * n if rank == 1 else None, src=1)


def check_lists_of_another_length(folder: Path) -> None:
    n = dist.get_world_size()
    with pytest.raises(ArgumentError, match=rf"list of 1 objects for {n} ranks"):
        dist.all_gather_object([None], 1)
    with pytest.raises(ArgumentError, match="empty output list"):
        dist.scatter_object_list([])
    with pytest.raises(ArgumentError, match=r"rank 0 must pass the list of objects, and no other rank"):
        dist.gather_object(1, None if dist.get_rank() == 0 else [None] * n)


def check_ranks_that_do_different_things(folder: Path) -> None:
    """All ranks learn what each is about to call, and can continue."""
    is_first = dist.get_rank() == 0
    others = ", ".join(map(str, range(1, dist.get_world_size())))
    x, y = tl.ones(3), tl.ones(3).double()
    with pytest.raises(DistributedError, match=rf"3 of tallow.float32 on cpu: rank 0\n .* 2 of .*: rank {others}\n"):
        dist.all_reduce(x if is_first else x[:2])
    with pytest.raises(DistributedError, match=r"float32 on cpu: rank 0\n .*float64 on cpu: rank 1"):
        dist.broadcast(x if is_first else y, src=0)
    with pytest.raises(DistributedError, match=r"all_reduce by SUM, 3 .*: rank 0\n  barrier: rank 1"):
        dist.all_reduce(x) if is_first else dist.barrier()
    with pytest.raises(DistributedError, match=r"by SUM.*: rank 0\n .*by MAX.*: rank 1"):
        dist.all_reduce(x, dist.ReduceOp.SUM if is_first else dist.ReduceOp.MAX)
    with pytest.raises(DistributedError, match=r"broadcast_object_list from 0, 1 objects: rank 0\n .* 2 objects"):
        dist.broadcast_object_list([1] if is_first else [1, 2])
    dist.all_reduce(x)
    assert x.tolist() == [dist.get_world_size()] * 3

"""Stores that several processes share."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tallow.distributed as dist


def use(store: dist.Store) -> None:
    """Exchange values by a store that is new and has these processes as its users."""
    rank, n = dist.get_rank(), dist.get_world_size()
    store = dist.PrefixStore("job", store)
    store.set(f"rank{rank}", str(rank) * 1000)
    assert store.multi_get([f"rank{i}" for i in range(n)]) == [str(i).encode() * 1000 for i in range(n)]
    for _ in range(20):
        store.add("steps", rank + 1)
    store.barrier("added", n)
    assert store.get("steps") == b"%d" % (20 * n * (n + 1) // 2)
    first = store.compare_set("first", "", str(rank))  # one of them sets it
    everybodys: list[Any] = [None] * n
    dist.all_gather_object(everybodys, first)
    assert set(everybodys) == {store.get("first")}
    with pytest.raises(dist.DistStoreError, match=r"wait timeout after 20ms, keys: /never"):
        store.wait(["never"], timedelta(milliseconds=20))
    dist.barrier()


def check_values_in_a_file(folder: Path) -> None:
    path = folder / "values"
    store = dist.FileStore(str(path), dist.get_world_size())
    use(store)
    del store
    dist.barrier()
    assert not path.exists()  # the last user has removed it


def check_values_by_tcp(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    port: list[Any] = [None]
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, n, is_master=True, wait_for_workers=False)
        port = [store.port]
    dist.broadcast_object_list(port)
    if rank != 0:
        store = dist.TCPStore("127.0.0.1", port[0], n)
    use(store)
    store.queue_push("jobs", str(rank))
    store.barrier("pushed", n)
    everybodys: list[Any] = [None] * n
    dist.all_gather_object(everybodys, store.queue_pop("jobs"))
    assert sorted(everybodys) == [str(i).encode() for i in range(n)]
    assert store.queue_len("jobs") == 0
    dist.barrier()

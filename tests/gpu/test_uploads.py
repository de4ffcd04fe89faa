"""Pinned memory: batches and weights are uploaded without waiting; memory is kept until a copy has read it."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tallow as tl
from tallow.data import DataLoader, TensorDataset
from tallow.errors import ArgumentTypeError


def test_a_pinned_tensor_is_a_copy(cuda: str) -> None:
    x = tl.arange(6).reshape(2, 3)
    pinned = x.pin_memory()
    assert pinned is not x
    assert pinned.tolist() == x.tolist()
    assert (pinned.is_pinned(), pinned[1:].is_pinned(), x.is_pinned()) == (True, True, False)
    assert pinned.pin_memory() is pinned
    x += 1
    assert pinned.to(cuda, non_blocking=True).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert pinned.T.to(cuda).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tl.zeros(0).pin_memory().to(cuda).shape == (0,)
    with pytest.raises(ArgumentTypeError, match="cannot pin a tensor on cuda:0"):
        x.to(cuda).pin_memory()


class Pair(NamedTuple):
    x: tl.Tensor
    rest: dict[str, Any]


def test_a_loader_gives_pinned_batches(cuda: str) -> None:
    data = TensorDataset(tl.arange(10.0).reshape(5, 2), tl.arange(5))
    for x, y in DataLoader(data, batch_size=2, pin_memory=True):
        assert x.is_pinned()
        assert y.is_pinned()
        assert x.to(cuda, non_blocking=True)[:, 0].tolist() == [2.0 * i for i in y.tolist()]
    (batch,) = DataLoader([0], pin_memory=True, collate_fn=lambda _: Pair(tl.ones(1), {"y": [tl.ones(2)], "s": "text"}))
    assert type(batch) is Pair
    assert batch.x.is_pinned()
    assert batch.rest["y"][0].is_pinned()
    assert batch.rest["s"] == "text"
    assert not any(x.is_pinned() for x, _ in DataLoader(data))


class PinnedMemoryPointer(bytearray):
    pass


class Card:
    """A stream that executes its copies in order when it is synchronized."""

    def __init__(self) -> None:
        self.queue: list[Any] = []

    def record(self, event: Event) -> Event:
        event.behind = len(self.queue)
        self.queue.append(lambda: setattr(event, "done", True))
        event.card = self
        return event

    def is_capturing(self) -> bool:
        return False

    def finish(self, until: int | None = None) -> None:
        count = len(self.queue) if until is None else until + 1
        for i, step in enumerate(self.queue[:count]):
            step()
            self.queue[i] = lambda: None


class Event:
    card: Card
    behind: int

    def __init__(self, disable_timing: bool) -> None:
        self.done = False

    def synchronize(self) -> None:
        self.card.finish(self.behind)


class Pointer:
    """Emulates cupy.cuda.MemoryPointer into NumPy's memory."""

    def __init__(self, card: Card, memory: np.ndarray[Any, Any]) -> None:
        self.card, self.memory = card, memory

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.card, self.memory[offset:])

    def copy_from_host_async(self, address: int, size: int) -> None:
        import ctypes

        target = self.memory

        def copy() -> None:
            target[:size] = np.frombuffer(ctypes.string_at(address, size), np.uint8)

        self.card.queue.append(copy)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    """tallow_cuda.uploads on a stub whose copies are delayed, so that reading too early or too late is noticed."""
    stub = Card()

    def empty(shape: Any, dtype: Any) -> Any:
        host = np.zeros(shape, dtype)
        return SimpleNamespace(host=host, data=Pointer(stub, host.reshape(-1).view(np.uint8)))

    runtime = SimpleNamespace(getDevice=lambda: 0)
    cuda = SimpleNamespace(
        runtime=runtime,
        Event=Event,
        Device=lambda index: nullcontext(),
        PinnedMemoryPointer=PinnedMemoryPointer,
        alloc_pinned_memory=PinnedMemoryPointer,
        get_current_stream=lambda: stub,
    )
    asarray = lambda array: SimpleNamespace(host=array.copy())  # noqa: E731
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, empty=empty, asarray=asarray, ndarray=None))
    monkeypatch.delitem(sys.modules, "tallow_cuda.uploads", raising=False)
    yield stub
    sys.modules.pop("tallow_cuda.uploads", None)  # its module holds the stub


def test_a_copy_keeps_what_it_reads(card: Card) -> None:
    uploads = importlib.import_module("tallow_cuda.uploads")
    queue, source = uploads.Uploads(), uploads.pinned(np.arange(5.0))
    reference = weakref.ref(source)
    uploaded = queue.upload(source, non_blocking=True)
    del source
    gc.collect()
    assert reference() is not None
    assert uploaded.host.tolist() == [0, 0, 0, 0, 0]
    card.finish()
    assert uploaded.host.tolist() == [0, 1, 2, 3, 4]
    queue.upload(uploads.pinned(np.ones(1)), non_blocking=True)
    gc.collect()
    assert reference() is None


def test_threads_do_not_drop_what_another_copy_reads(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread checks for finished copies just after this one has found the first of them."""
    uploads = importlib.import_module("tallow_cuda.uploads")
    queue = uploads.Uploads()
    queue.upload(uploads.pinned(np.ones(1)), non_blocking=True)
    source = uploads.pinned(np.arange(3.0))
    reference = weakref.ref(source)
    queue.upload(source, non_blocking=True)
    del source
    other = threading.Thread(target=queue.upload, args=(uploads.pinned(np.ones(1)), True))

    class Asked:
        def __bool__(self) -> bool:
            if not other.ident:
                other.start()
                other.join(0.2)  # it must wait for this one
            return True

    queue._unfinished[0][0].done = Asked()
    queue.upload(uploads.pinned(np.ones(1)), non_blocking=True)
    other.join()
    gc.collect()
    assert reference() is not None


def test_a_blocking_copy_is_complete(card: Card) -> None:
    uploads = importlib.import_module("tallow_cuda.uploads")
    source = uploads.pinned(np.arange(6).reshape(2, 3))
    assert uploads.is_pinned(source[:, 1:])
    assert not uploads.is_pinned(source.copy())
    uploaded = uploads.Uploads().upload(source.T, non_blocking=False)
    source[:] = 7
    assert uploaded.host.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("length", [41, 40, 24, 9])
def test_large_arrays_go_by_parts_through_memory_of_a_fixed_size(
    length: int, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = importlib.import_module("tallow_cuda.uploads")
    monkeypatch.setattr(uploads, "PART", 8)
    queue = uploads.Uploads()
    sources = [np.arange(length, dtype=np.uint8) + shift for shift in (1, 100)]
    copies = [queue.upload(source, non_blocking=False) for source in sources]
    expected = [source.copy() for source in sources]
    for source in sources:
        source[:] = 0  # it may be overwritten at once
    card.finish()
    for uploaded, source in zip(copies, expected, strict=True):
        np.testing.assert_array_equal(uploaded.host, source)
    assert [memory.nbytes for memory, _ in queue._parts[0]] == [8, 8]

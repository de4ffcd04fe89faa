"""tl.cuda's peaks, errors, streams and events: on stubs that count, and on a GPU if available."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support import cupy_like

import tallow as tl
from tallow import devices
from tallow.errors import ArgumentError, OutOfMemoryError


class Pool:
    """Emulates cupy.cuda.MemoryPool on a device of 1000 bytes."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error
        self.sizes: list[int] = []
        self.asked = 0

    def malloc(self, size: int) -> int:
        if sum(self.sizes) + size > 1000:
            raise self.error("out of memory")
        self.sizes.append(size)
        return size

    def used_bytes(self) -> int:
        self.asked += 1
        return sum(self.sizes)

    def total_bytes(self) -> int:
        return sum(self.sizes) + 50

    def free_bytes(self) -> int:
        return 50


class CupyError(MemoryError):
    pass


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """tallow_cuda.memory's allocator on a counting pool."""
    runtime = SimpleNamespace(getDevice=lambda: 0, memGetInfo=lambda: (1000, 4000), getDeviceCount=lambda: 1)
    cuda = SimpleNamespace(runtime=runtime, memory=SimpleNamespace(OutOfMemoryError=CupyError), Device=Device)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.delitem(sys.modules, "tallow_cuda.memory", raising=False)
    memory_manager = importlib.import_module("tallow_cuda.memory").Memory(Pool(CupyError))
    backend = SimpleNamespace(type="cuda", memory=memory_manager, module=SimpleNamespace(cuda=cuda))
    monkeypatch.setitem(devices._BY_TYPE, "cuda", backend)
    monkeypatch.setattr("tallow.cuda._pool", lambda device: memory_manager.pool)
    yield memory_manager
    sys.modules.pop("tallow_cuda.memory", None)  # its module holds the stub


class Device:
    def __init__(self, index: int) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def test_peaks_are_kept_until_they_are_reset(memory: Any) -> None:
    for size in (300, 400):
        memory.allocate(size)
    memory.pool.sizes.pop()
    memory.allocate(100)
    assert tl.cuda.max_memory_allocated() == 700
    assert tl.cuda.memory_allocated() == 400
    assert tl.cuda.max_memory_reserved() == 750
    tl.cuda.reset_peak_memory_stats()
    assert tl.cuda.max_memory_allocated() == 400
    memory.allocate(200)
    assert tl.cuda.max_memory_allocated("cuda:0") == 600


def test_the_pool_is_queried_only_for_possible_peaks(memory: Any) -> None:
    memory.allocate(900)
    memory.pool.sizes.clear()
    memory.pool.asked = 0
    for _ in range(800):
        memory.allocate(1)
        memory.pool.sizes.clear()
    assert memory.pool.asked <= 1
    assert memory.peak(0) == 900


def test_out_of_memory_errors_name_the_free_memory(memory: Any) -> None:
    memory.allocate(900)
    with pytest.raises(tl.cuda.OutOfMemoryError, match=r"200 bytes requested on cuda:0; 1,000 of 4,000 are free.*\n"):
        memory.allocate(200)
    memory.allocate(100)  # and the program continues
    assert tl.cuda.OutOfMemoryError is tl.OutOfMemoryError is OutOfMemoryError
    assert issubclass(OutOfMemoryError, RuntimeError)


class DriverError(RuntimeError):
    status = 2  # cudaErrorMemoryAllocation


class PoolOfPieces:
    """Emulates cupy.cuda.MemoryPool, whose arrays return their memory to it.

    If its allocator finds none, the pool frees unused memory and asks again (cuda/memory.pyx, _try_malloc).
    """

    def __init__(self, allocator: Any) -> None:
        self.allocator = allocator
        self.free: list[int] = []
        self.limit: int | None = None

    def set_limit(self, size: int) -> None:
        self.limit = size

    def malloc(self, size: int) -> Any:
        try:
            return self.allocator(size)
        except DriverError:
            self.free.clear()
            return self.allocator(size)


def test_a_capture_without_memory_does_not_use_that_of_earlier_ones(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["tallow_cuda.memory"]
    cuda = module.cupy.cuda
    cuda.runtime.CUDARuntimeError = DriverError
    cuda.MemoryPool, cuda.MemoryPointer = PoolOfPieces, lambda memory, offset: memory

    def driver(size: int) -> int:
        if size > 1000:
            raise DriverError("out of memory")
        return size

    cuda.Memory = driver
    pool = module.graph_pool()
    assert pool.malloc(1000) == 1000
    assert pool.limit == 0
    pool.free.append(1000)  # of a deleted array; a captured graph writes there all the same
    with pytest.raises(OutOfMemoryError, match=r"1,001 bytes requested on cuda:0, for a CUDA graph\n.*empty_cache\(\)"):
        pool.malloc(1001)
    assert pool.free == [1000]


def test_tf32_is_switched_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = cupy_like.Backend()
    monkeypatch.setitem(devices._BY_TYPE, "cuda", backend)
    try:
        tl.backends.cuda.matmul.allow_tf32 = True
        assert backend.tf32
        tl.set_float32_matmul_precision("highest")
        assert not backend.tf32
        tl.set_float32_matmul_precision("high")
        assert backend.tf32
    finally:
        tl.set_float32_matmul_precision("highest")


class Stream:
    """Emulates cupy.cuda.Stream; `log` records the calls of all streams."""

    log: list[Any] = []  # noqa: RUF012
    current: Any = None

    def __init__(self, non_blocking: bool = False, priority: int = 0, ptr: int = 5) -> None:
        self.ptr = ptr
        self.done = True

    def __enter__(self) -> None:
        self.before, Stream.current = Stream.current, self

    def __exit__(self, *error: object) -> None:
        Stream.current = self.before

    def synchronize(self) -> None:
        self.log.append(("synchronize", self.ptr))

    def wait_event(self, event: Event) -> None:
        self.log.append(("wait", self.ptr, event.at))


class Event:
    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.at: Any = None
        self.done = False

    def record(self, stream: Stream) -> None:
        self.at = stream.ptr

    def synchronize(self) -> None:
        self.done = True


def test_streams_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    null = Stream(ptr=0)
    Stream.current = null
    Stream.log.clear()
    monkeypatch.setattr(Stream, "null", null, raising=False)
    cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDevice=lambda: 0),
        Device=cupy_like.Gpu,
        Stream=Stream,
        Event=Event,
        get_current_stream=lambda: Stream.current,
        get_elapsed_time=lambda a, b: float(b.at - a.at),
    )
    monkeypatch.setitem(devices._BY_TYPE, "cuda", SimpleNamespace(module=SimpleNamespace(cuda=cuda)))
    side = tl.cuda.Stream()
    start, end = (tl.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    with tl.cuda.stream(side):
        assert tl.cuda.current_stream() == side
        end.record()
    assert tl.cuda.current_stream() == tl.cuda.default_stream() != side
    assert start.elapsed_time(end) == side.cuda_stream
    assert not end.query()
    end.synchronize()
    assert end.query()
    assert side.query()
    tl.cuda.current_stream().wait_stream(side)
    side.synchronize()
    end.wait()
    assert Stream.log == [("wait", 0, 5), ("synchronize", 5), ("wait", 0, 5)]
    with tl.cuda.stream(None), pytest.raises(ArgumentError, match="enable_timing=True"):
        start.elapsed_time(tl.cuda.Event())


@pytest.mark.gpu
class TestOnAGpu:
    def test_memory_is_counted_and_released(self) -> None:
        tl.cuda.reset_peak_memory_stats()
        before = tl.cuda.memory_allocated()
        x = tl.zeros(1 << 20, device="cuda")
        del x
        assert tl.cuda.memory_allocated() == before
        assert tl.cuda.max_memory_allocated() >= before + (4 << 20)
        tl.cuda.empty_cache()
        assert tl.cuda.memory_reserved() <= tl.cuda.max_memory_reserved()

    def test_too_large_allocations_raise_and_the_program_continues(self) -> None:
        with pytest.raises(tl.cuda.OutOfMemoryError, match="bytes requested on cuda:0"):
            tl.zeros(1 << 44, dtype=tl.uint8, device="cuda")
        assert tl.ones(3, device="cuda").sum().item() == 3

    def test_events_time_what_lies_between_them(self) -> None:
        start, end = (tl.cuda.Event(enable_timing=True) for _ in range(2))
        x = tl.ones(1024, 1024, device="cuda")
        side = tl.cuda.Stream()
        side.wait_stream(tl.cuda.current_stream())
        with tl.cuda.stream(side):
            start.record()
            y = x @ x
            end.record()
        tl.cuda.current_stream().wait_stream(side)
        end.synchronize()
        assert start.elapsed_time(end) > 0
        assert y[0, 0].item() == 1024

    def test_tf32_rounds_to_ten_bits(self) -> None:
        x = tl.full((64, 64), 1 + 2**-12, device="cuda")
        exact = (x @ x).cpu()
        tl.backends.cuda.matmul.allow_tf32 = True
        try:
            assert not tl.equal((x @ x).cpu(), exact)
        finally:
            tl.backends.cuda.matmul.allow_tf32 = False
        assert tl.equal((x @ x).cpu(), exact)

"""Streams and events, as in torch.cuda: queues of work for a GPU, and markers in them. They wrap those of CuPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallow import cuda, devices
from tallow.devices import get_backend
from tallow.errors import ArgumentError

__all__ = ["Event", "Stream", "current_stream", "default_stream", "stream"]


def _cuda() -> Any:
    """Return the module cupy.cuda. Raises: DeviceError without CuPy or a GPU."""
    return get_backend("cuda").module.cuda


class Event:
    """A marker in a stream, as torch.cuda.Event.

    Args:
        enable_timing: allow `elapsed_time`.
        blocking: sleep in `synchronize` instead of busy-waiting.

    Example:
        start, end = tl.cuda.Event(enable_timing=True), tl.cuda.Event(enable_timing=True)
        start.record()
        y = x @ x
        end.record()
        end.synchronize()
        print(start.elapsed_time(end), "ms")
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._options = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}
        self._event: Any = None
        self.enable_timing = enable_timing

    @property
    def cupy_event(self) -> Any:
        """The CuPy event, on the device that was current at the first use."""
        if self._event is None:
            self._event = _cuda().Event(**self._options)
        return self._event

    def record(self, stream: Stream | None = None) -> None:
        """Mark the end of the work that the stream, or the current one, has been given so far."""
        stream = current_stream() if stream is None else stream
        with cuda.device(stream.device):
            self.cupy_event.record(stream.cupy_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Make later work of the stream, or the current one, wait for this event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Return whether the event has happened."""
        return bool(self.cupy_event.done)

    def synchronize(self) -> None:
        """Wait for the event."""
        self.cupy_event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to a later one.

        Raises: ArgumentError if one of them was created without enable_timing.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ArgumentError("elapsed_time: create both events with Event(enable_timing=True)")
        return float(_cuda().get_elapsed_time(self.cupy_event, end_event.cupy_event))


class Stream:
    """A queue of work that a GPU does in order, concurrently with other streams, as torch.cuda.Stream.

    Args:
        device: the current device if None.
        priority: lower numbers go first.
        cupy_stream: an existing CuPy stream of the device; for internal use.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, cupy_stream: Any = None) -> None:
        self._index = cuda._index(device)
        if cupy_stream is None:
            with cuda.device(self._index):
                cupy_stream = _cuda().Stream(non_blocking=True, priority=priority)
        self.cupy_stream = cupy_stream

    @property
    def device(self) -> devices.device:
        """The GPU of the stream."""
        return devices.device("cuda", self._index)

    @property
    def cuda_stream(self) -> int:
        """The CUDA handle of the stream."""
        return int(self.cupy_stream.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int]:
        return self._index, self.cuda_stream

    def query(self) -> bool:
        """Return whether all work of the stream is done."""
        return bool(self.cupy_stream.done)

    def synchronize(self) -> None:
        """Wait until all work of the stream is done."""
        self.cupy_stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if None, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make later work wait for an event."""
        self.cupy_stream.wait_event(event.cupy_event)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work wait for all work that the other stream has been given so far."""
        self.wait_event(stream.record_event())


def current_stream(device: Any = None) -> Stream:
    """Return the stream that ops on a device go to; None is the current device."""
    with cuda.device(device):
        return Stream(cupy_stream=_cuda().get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the default stream of a device."""
    return Stream(device, cupy_stream=_cuda().Stream.null)


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Run ops within the block on this stream, and make its device current: `with tl.cuda.stream(s):`."""
    if stream is None:
        yield
        return
    with cuda.device(stream.device), stream.cupy_stream:
        yield

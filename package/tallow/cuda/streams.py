"""Streams and events of torch.cuda, around CuPy's: what a GPU does one after the other, and moments in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallow import cuda, devices
from tallow.devices import get_backend
from tallow.errors import ArgumentError

__all__ = ["Event", "Stream", "current_stream", "default_stream", "stream"]


def _cuda() -> Any:
    """CuPy's module. Raises:  DeviceError without CuPy or a GPU"""
    return get_backend("cuda").module.cuda


class Event:
    """A moment in a stream, as torch.cuda.Event.

    Args:
        enable_timing: for `elapsed_time`.
        blocking: sleep in `synchronize`, instead of spinning.

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
        self._made: Any = None
        self.enable_timing = enable_timing

    @property
    def cupy_event(self) -> Any:
        """CuPy's event, of the device that was current when it was first asked for."""
        if self._made is None:
            self._made = _cuda().Event(**self._options)
        return self._made

    def record(self, stream: Stream | None = None) -> None:
        """Be the moment when the stream, or the current one, has done all that it was given so far."""
        stream = current_stream() if stream is None else stream
        with cuda.device(stream.device):
            self.cupy_event.record(stream.cupy_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what the stream, or the current one, is given from now on wait for this moment."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether the moment is past."""
        return bool(self.cupy_event.done)

    def synchronize(self) -> None:
        """Wait for the moment."""
        self.cupy_event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this moment to a later one.

        Raises:  ArgumentError when one of them was made without enable_timing
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ArgumentError("elapsed_time: both events must be made with Event(enable_timing=True)")
        return float(_cuda().get_elapsed_time(self.cupy_event, end_event.cupy_event))


class Stream:
    """What a GPU does one after the other, beside other streams, as torch.cuda.Stream.

    Args:
        device: the current one if None.
        priority: lower goes first.
        cupy_stream: one of the device that there is; tallow's own.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, cupy_stream: Any = None) -> None:
        self._index = cuda._index(device)
        if cupy_stream is None:
            with cuda.device(self._index):
                cupy_stream = _cuda().Stream(non_blocking=True, priority=priority)
        self.cupy_stream = cupy_stream

    @property
    def device(self) -> devices.device:
        """The GPU that the stream is of."""
        return devices.device("cuda", self._index)

    @property
    def cuda_stream(self) -> int:
        """CUDA's own handle of it."""
        return int(self.cupy_stream.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int]:
        return self._index, self.cuda_stream

    def query(self) -> bool:
        """Whether all that it was given is done."""
        return bool(self.cupy_stream.done)

    def synchronize(self) -> None:
        """Wait until all that it was given is done."""
        self.cupy_stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        self.cupy_stream.wait_event(event.cupy_event)

    def wait_stream(self, stream: Stream) -> None:
        """Let what is given from now on wait for all that the other was given so far."""
        self.wait_event(stream.record_event())


def current_stream(device: Any = None) -> Stream:
    """The one that ops on a device go to; on the current one if None."""
    with cuda.device(device):
        return Stream(cupy_stream=_cuda().get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The one that ops on a device go to where the program has chosen none."""
    return Stream(device, cupy_stream=_cuda().Stream.null)


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Within the block, ops go to this stream, and its device is the current one: `with tl.cuda.stream(s):`."""
    if stream is None:
        yield
        return
    with cuda.device(stream.device), stream.cupy_stream:
        yield

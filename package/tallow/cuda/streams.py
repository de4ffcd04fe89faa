"""Streams and events of torch.cuda, around CuPy's: what a GPU does one after the other, and moments in it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tallow import cuda
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
        self.cupy_event = _cuda().Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)
        self.enable_timing = enable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Be the moment when the stream, or the current one, has done all that it was given so far."""
        self.cupy_event.record((current_stream() if stream is None else stream).cupy_stream)

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
        cupy_stream: one that there is; tallow's own.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, cupy_stream: Any = None) -> None:
        if cupy_stream is None:
            with nullcontext() if device is None else cuda.device(device):
                cupy_stream = _cuda().Stream(non_blocking=True, priority=priority)
        self.cupy_stream = cupy_stream

    @property
    def cuda_stream(self) -> int:
        """CUDA's own handle of it."""
        return int(self.cupy_stream.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

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
    """The one that ops go to."""
    return Stream(cupy_stream=_cuda().get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The one that ops go to where the program has chosen none."""
    return Stream(cupy_stream=_cuda().Stream.null)


def stream(stream: Stream | None) -> AbstractContextManager[Any]:
    """Within the block, ops go to this stream: `with tl.cuda.stream(s):`."""
    return nullcontext() if stream is None else stream.cupy_stream

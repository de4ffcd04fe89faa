"""`cupy.cuda`'s streams for the stand-in, and what they capture: while one captures, work is noted and not done.

A graph runs again what was noted, on the same memory. What CuPy or CUDA refuses in a capture is refused here. Until the
first replay, memory that the capture took holds NaN or -1, so that nobody takes what was there for a result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

Step = Callable[[], Any]

current: list[Stream] = []


def current_device() -> int:
    """The number of the GPU that is current; cupy_like puts its own in place."""
    return 0


class Graph:
    """As cupy.cuda.Graph."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps

    def launch(self, stream: Any = None) -> None:
        if capturing() is not None:
            raise RuntimeError("a graph is launched while a stream is capturing")
        with np.errstate(all="ignore"):
            for step in self.steps:
                step()


class Stream:
    """As cupy.cuda.Stream."""

    null: Stream
    made = 0

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.ptr = Stream.made
        self.device_id = current_device() if Stream.made else -1  # that of the null stream is any
        Stream.made += 1
        self.steps: list[Step] | None = None

    def __enter__(self) -> Stream:
        if self.device_id not in (-1, current_device()):  # cuda/stream.pyx, check_stream_device_match
            raise RuntimeError(f"The device that the stream is created on ({self.device_id}) does not match")
        current.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert current.pop() is self

    def begin_capture(self, mode: Any = None) -> None:
        assert self is not Stream.null
        assert self.steps is None
        self.steps = []

    def end_capture(self) -> Graph:
        assert self.steps is not None
        steps, self.steps = self.steps, None
        return Graph(steps)

    def is_capturing(self) -> bool:
        return self.steps is not None

    def synchronize(self) -> None:
        refuse("synchronize")


Stream.null = Stream()


class MemoryPool:
    """As cupy.cuda.MemoryPool; NumPy's memory comes from elsewhere, and lives as long as the steps that use it."""

    def malloc(self, size: int) -> Any:
        raise NotImplementedError


@contextmanager
def using_allocator(allocator: Any) -> Any:
    yield


def get_current_stream() -> Stream:
    return current[-1] if current else Stream.null


def capturing() -> list[Step] | None:
    """What the current stream has noted so far, if it captures."""
    return current[-1].steps if current else None


def refuse(what: str) -> None:
    """Raise, as CuPy does, if the current stream captures."""
    if capturing() is not None:
        raise RuntimeError(f"{what}: the current stream is capturing, so synchronous API calls are not allowed")


def later(step: Step) -> bool:
    """Note a step, if the current stream captures; otherwise it is to be done now."""
    steps = capturing()
    if steps is not None:
        steps.append(step)
    return steps is not None


def noted(function: Callable[..., Any], args: Any, kwargs: Any, writes: bool) -> Any:
    """What a function of NumPy's returns, noted for replays; nothing in it is a result yet.

    Args:  writes: it changes its arguments
    """
    if writes:
        later(lambda: function(*args, **kwargs))
        return None
    result = function(*args, **kwargs)
    results = result if isinstance(result, tuple | list) else [result]
    results = [np.asarray(x) if isinstance(x, np.generic) else x for x in results]
    operands = [x for x in (getattr(function, "__self__", None), *args, *kwargs.values()) if isinstance(x, np.ndarray)]
    operands += [x for given in args if isinstance(given, tuple | list) for x in given if isinstance(x, np.ndarray)]
    fresh = [
        x for x in results if isinstance(x, np.ndarray) and not any(np.may_share_memory(x, other) for other in operands)
    ]
    if fresh:

        def again() -> None:
            values = function(*args, **kwargs)
            values = values if isinstance(values, tuple | list) else [values]
            for to, value in zip(results, values, strict=True):
                if any(to is x for x in fresh):
                    to[...] = value

        if getattr(function, "__name__", "") not in ("empty", "empty_like"):
            later(again)
        for x in fresh:
            x[...] = np.frombuffer((b"\xff" if x.dtype != bool else b"\1") * x.itemsize, x.dtype)[0]
    return results[0] if not isinstance(result, tuple | list) else type(result)(results)


NAMES = {
    "Graph": Graph,
    "MemoryPool": MemoryPool,
    "Stream": Stream,
    "get_current_stream": get_current_stream,
    "using_allocator": using_allocator,
}  # of cupy.cuda

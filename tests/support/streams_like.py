"""Streams, graphs and memory pools of the CuPy stand-in, including graph capture.

While a stream captures, operations are recorded and not executed; launching the graph executes them on the same memory.
Operations that CuPy or CUDA reject during capture raise here. Until the first launch, memory allocated in the capture
holds NaN or -1, so code that reads it before then gets a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

Step = Callable[[], Any]

current: list[Stream] = []


def current_device() -> int:
    """Return the index of the current GPU; cupy_like replaces this function."""
    return 0


class Graph:
    """Emulates cupy.cuda.Graph."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps

    def launch(self, stream: Any = None) -> None:
        if captured_steps() is not None:
            raise RuntimeError("a graph is launched while a stream is capturing")
        with np.errstate(all="ignore"):
            for step in self.steps:
                step()


class Stream:
    """Emulates cupy.cuda.Stream."""

    null: Stream
    count = 0

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.ptr = Stream.count
        self.device_id = current_device() if Stream.count else -1  # the null stream belongs to every device
        Stream.count += 1
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
        refuse_if_capturing("synchronize")


Stream.null = Stream()


class MemoryPool:
    """Emulates cupy.cuda.MemoryPool. NumPy allocates the memory; recorded steps keep it alive."""

    def malloc(self, size: int) -> Any:
        raise NotImplementedError


@contextmanager
def using_allocator(allocator: Any) -> Any:
    yield


def get_current_stream() -> Stream:
    return current[-1] if current else Stream.null


def captured_steps() -> list[Step] | None:
    """Return the steps the current stream has captured so far, or None if it is not capturing."""
    return current[-1].steps if current else None


def refuse_if_capturing(what: str) -> None:
    """Raise, as CuPy does, if the current stream is capturing."""
    if captured_steps() is not None:
        raise RuntimeError(f"{what}: the current stream is capturing, so synchronous API calls are not allowed")


def record(step: Step) -> bool:
    """Record a step if the current stream is capturing. Return False if the caller must execute it now."""
    steps = captured_steps()
    if steps is not None:
        steps.append(step)
    return steps is not None


def record_call(function: Callable[..., Any], args: Any, kwargs: Any, writes: bool) -> Any:
    """Record a NumPy call for later launches and return its outputs, which do not hold a result yet.

    Args:
        writes: the function changes its arguments.
    """
    if writes:
        record(lambda: function(*args, **kwargs))
        return None
    result = function(*args, **kwargs)
    results = result if isinstance(result, tuple | list) else [result]
    results = [np.asarray(x) if isinstance(x, np.generic) else x for x in results]
    operands = [x for x in (getattr(function, "__self__", None), *args, *kwargs.values()) if isinstance(x, np.ndarray)]
    operands += [
        x for argument in args if isinstance(argument, tuple | list) for x in argument if isinstance(x, np.ndarray)
    ]
    fresh = [
        x
        for x in results
        if isinstance(x, np.ndarray) and not any(np.may_share_memory(x, operand) for operand in operands)
    ]
    if fresh:

        def replay() -> None:
            values = function(*args, **kwargs)
            values = values if isinstance(values, tuple | list) else [values]
            for target, value in zip(results, values, strict=True):
                if any(target is x for x in fresh):
                    target[...] = value

        if getattr(function, "__name__", "") not in ("empty", "empty_like"):
            record(replay)
        for x in fresh:
            x[...] = np.frombuffer((b"\xff" if x.dtype != bool else b"\1") * x.itemsize, x.dtype)[0]
    return results[0] if not isinstance(result, tuple | list) else type(result)(results)


NAMES = {
    "Graph": Graph,
    "MemoryPool": MemoryPool,
    "Stream": Stream,
    "get_current_stream": get_current_stream,
    "using_allocator": using_allocator,
}  # names of cupy.cuda

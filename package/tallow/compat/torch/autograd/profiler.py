"""torch.autograd.profiler: measure the time of ops, and of named blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, Self

from tallow.compat.absent import absent
from tallow.compat.registry import op_named
from tallow.compat.torch.autograd.profiler_util import EventList, FunctionEvent, Interval, nested
from tallow.compat.torch.utils.flop_counter import flops_of_call
from tallow.core import watching
from tallow.core.tensor import Tensor
from tallow.errors import GraphError
from tallow.ops.table import Op
from tallow.tape import engine
from tallow.tape.graph import Node

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function"]

_HINT = "use profile, which measures the ops on every device"
emit_nvtx = absent("torch.autograd.profiler.emit_nvtx", _HINT)
emit_itt = absent("torch.autograd.profiler.emit_itt", _HINT)

_recorders: list[Recorder] = []  # those that measure now


def kineto_available() -> bool:
    """Return whether there is a profiler: always."""
    return True


class Recorder:
    """A record of the ops, backward steps and named blocks that run, in all threads.

    Args:
        record_shapes: note the shapes of the operands.
        flops: returns the work of a call, for `with_flops`.
    """

    def __init__(self, record_shapes: bool = False, flops: Callable[..., int | None] | None = None) -> None:
        self.record_shapes, self.flops = record_shapes, flops
        self.events: list[FunctionEvent] = []

    def start(self) -> None:
        """Begin to measure."""
        watching.watch(self._run)
        _recorders.append(self)
        if len(_recorders) == 1:
            engine.Sweep.send = _measured_send  # type: ignore[method-assign]

    def stop(self) -> None:
        """Cease to measure."""
        watching.unwatch(self._run)
        _recorders.remove(self)
        if not _recorders:
            engine.Sweep.send = _send  # type: ignore[method-assign]

    def _run(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        start = time.perf_counter()
        result = function(*args, **kwargs)
        self.note(f"aten::{op.name}", start, args, self.flops and self.flops(op, args, kwargs, result))
        return result

    def note(
        self, name: str, start: float, args: Any = None, flops: int | None = None, is_user_annotation: bool = False
    ) -> None:
        """Note something that began at a time, and ends now."""
        span = Interval(1e6 * start, 1e6 * time.perf_counter())
        shapes = [list(x.shape) if isinstance(x, Tensor) else [] for x in args or ()] if self.record_shapes else None
        number = len(self.events)
        self.events.append(FunctionEvent(number, name, threading.get_ident(), span, shapes, flops, is_user_annotation))

    def sorted_events(self) -> EventList:
        """Return the events in order, each with those inside it."""
        for event in self.events:
            event.cpu_parent, event.cpu_children = None, []
        return nested(self.events)


_send = engine.Sweep.send


def _measured_send(self: Any, node: Node, grad: Any, selective: bool) -> None:
    start, name = time.perf_counter(), node.name()
    _send(self, node, grad, selective)
    for recorder in _recorders:
        recorder.note(f"autograd::engine::evaluate_function: {name}", start)


class profile:
    """Measure the ops inside: `with profile() as p: ...; print(p.key_averages().table())`.

    Args:
        enabled: False measures nothing.
        record_shapes: note the shapes of the operands.
        use_cuda, use_device, with_stack, with_modules, profile_memory, use_kineto, use_cpu: have no effect. The time of
            an op on a GPU is that of its call.
    """

    def __init__(
        self, enabled: bool = True, *, record_shapes: bool = False, with_flops: bool = False, **_: Any
    ) -> None:
        self.enabled = enabled
        self._recorder = Recorder(record_shapes, flops_of if with_flops else None)
        self.function_events: EventList | None = None

    def __enter__(self) -> Self:
        if self.function_events is not None:
            raise GraphError("a profile is not reentrant", hint="make another one")
        if self.enabled:
            self._recorder.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.enabled:
            self._recorder.stop()
            self.function_events = self._recorder.sorted_events()

    def _events(self) -> EventList:
        if self.function_events is None:
            raise GraphError("the profiler has not finished", hint="ask after the block")
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return the sums by name, or by name and shapes."""
        return self._events().key_averages(group_by_input_shape)

    def total_average(self) -> Any:
        """Return the sum over all events."""
        return self._events().total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Return a table of the events."""
        return self._events().table(sort_by, row_limit, **options)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events in the format of chrome://tracing."""
        self._events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of the events; see `EventList.export_stacks`."""
        self._events().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the events' own times, in microseconds."""
        return self._events().self_cpu_time_total

    def __str__(self) -> str:
        return "<unfinished profile>" if self.function_events is None else str(self.function_events)


class record_function(ContextDecorator):
    """Name a block for the profilers that measure it: `with record_function("forward"):`. Also a decorator.

    Args:
        name: of the block.
        args: a text that belongs to it.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._starts: list[float] = []

    def __enter__(self) -> Self:
        self._starts.append(time.perf_counter())
        return self

    def __exit__(self, *exc_info: object) -> None:
        start = self._starts.pop()
        for recorder in _recorders:
            recorder.note(self.name, start, is_user_annotation=True)


def _record_function_enter(name: str, args: str | None = None) -> record_function:
    """Begin a block, and return it for `_record_function_exit`. Graphs have blocks so: `torch.ops.profiler`."""
    return record_function(name, args).__enter__()


def _record_function_exit(record: record_function) -> None:
    """End a block."""
    record.__exit__()


for _function in (_record_function_enter, _record_function_exit):
    op_named(f"profiler::{_function.__name__}").functions[""] = _function


def flops_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int | None:
    """Return the additions and multiplications of a call, or None if they are not known."""
    return flops_of_call(op, args, kwargs, result)

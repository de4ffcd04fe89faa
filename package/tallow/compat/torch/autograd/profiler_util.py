"""torch.autograd.profiler_util: what a profiler has measured, event by event and summed by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tallow.errors import ArgumentError

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]

_COLUMNS = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
_SHAPES = "Input Shapes"
_NO_SEPARATORS = str.maketrans(" ;\t\n", "____")  # of stacks and their times, for flamegraph.pl


class Interval(NamedTuple):
    """A span of time, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return its length."""
        return self.end - self.start


class Kernel(NamedTuple):
    """A kernel on a GPU; tallow's profiler lists none."""

    name: str
    device: int
    duration: float


@dataclass(eq=False)
class FunctionEvent:
    """A call of an op, or a block of `record_function`.

    Attributes:
        id: the number of the event.
        name: such as "aten::matmul".
        thread: the thread's number.
        time_range: when it ran, in microseconds.
        input_shapes: the shapes of the tensors among the arguments, if they were recorded; [] for others.
        flops: the additions and multiplications, if they were asked for and are known.
        is_user_annotation: whether this is a block of `record_function`.
        cpu_children: the events inside.
    """

    id: int
    name: str
    thread: int
    time_range: Interval
    input_shapes: list[list[int]] | None = None
    flops: int | None = None
    is_user_annotation: bool = False
    cpu_parent: FunctionEvent | None = None
    cpu_children: list[FunctionEvent] = field(default_factory=list)
    count: int = 1
    kernels: tuple[Kernel, ...] = ()
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0.0
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0

    @property
    def key(self) -> str:
        """The name by which events are summed."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def cpu_time_total(self) -> float:
        """The time from begin to end, in microseconds."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """The time without that of the events inside."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_time(self) -> float:
        """The time of one call."""
        return self.cpu_time_total / self.count


class FunctionEventAvg:
    """The events of one name, summed."""

    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0.0
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0

    def __init__(self, first: FunctionEvent) -> None:
        self.key = first.key
        self.input_shapes = first.input_shapes
        self.is_user_annotation = first.is_user_annotation
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.flops = 0

    def add(self, event: FunctionEvent) -> None:
        """Add a call."""
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.flops += event.flops or 0

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0


class EventList(list[Any]):
    """Events, or their sums by name."""

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the events' own times, in microseconds."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """Return the sums by name, or by name and shapes of the operands."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (event.key, str(event.input_shapes)) if group_by_input_shape else event.key
            sums.setdefault(key, FunctionEventAvg(event)).add(event)
        return EventList(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """Return the sum over all events, named "Total"."""
        if not self:
            raise ArgumentError("total_average: nothing was profiled")
        total = FunctionEventAvg(self[0])
        total.key = "Total"
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return a table of the events, one a line.

        Args:
            sort_by: an attribute such as "cpu_time_total"; the largest come first.
            row_limit: the number of lines; -1 for all.

        Raises: ArgumentError for an attribute that events do not have.
        """
        rows = [e for e in self if getattr(e, "cpu_parent", None) is None] if top_level_events_only else list(self)
        if sort_by is not None:
            if rows and not hasattr(rows[0], sort_by):
                raise ArgumentError(f"table: events have no {sort_by!r}", hint="such as 'self_cpu_time_total'")
            rows.sort(key=lambda event: -getattr(event, sort_by))
        total = self.self_cpu_time_total
        has_shapes = any(event.input_shapes is not None for event in rows)
        lines = [[*_COLUMNS, *([_SHAPES] if has_shapes else [])]]
        for event in rows[: None if row_limit < 0 else row_limit]:
            share = [100 * t / total if total else 0.0 for t in (event.self_cpu_time_total, event.cpu_time_total)]
            line = [
                _cut(event.key, max_name_column_width),
                f"{share[0]:.2f}%",
                _time(event.self_cpu_time_total),
                f"{share[1]:.2f}%",
                _time(event.cpu_time_total),
                _time(event.cpu_time),
                str(event.count),
            ]
            lines.append(line + ([_cut(str(event.input_shapes or []), max_shapes_column_width)] if has_shapes else []))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rule = "  ".join("-" * width for width in widths)
        text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        head = [rule] if header is None else [header, rule]
        return "\n".join([*head, text[0], rule, *text[1:], rule, f"Self CPU time total: {_time(total)}", ""])

    def __str__(self) -> str:
        return self.table()

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of the events, those around them first, with a time in microseconds: for flame graphs.

        The stacks are of blocks and ops; the lines of Python between them are not recorded.

        Raises: ArgumentError for another metric than "self_cpu_time_total" and "self_cuda_time_total".
        """
        if metric not in ("self_cpu_time_total", "self_cuda_time_total", "self_device_time_total"):
            raise ArgumentError(f"export_stacks: {metric!r}", hint="such as 'self_cpu_time_total'")
        times: dict[str, int] = {}
        for event in self:
            names: list[str] = []
            at = event
            while at is not None:
                names.insert(0, at.name.translate(_NO_SEPARATORS))
                at = getattr(at, "cpu_parent", None)
            stack = ";".join(names)
            times[stack] = times.get(stack, 0) + int(getattr(event, metric))
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{stack} {time}\n" for stack, time in times.items() if time > 0)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events in the format of chrome://tracing and Perfetto."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": chrome_trace(self), "displayTimeUnit": "ms"}, file)


def chrome_trace(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """Return events as entries of a Chrome trace."""
    return [
        {
            "ph": "X",
            "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
            "name": event.name,
            "pid": 0,
            "tid": event.thread,
            "ts": event.time_range.start,
            "dur": event.cpu_time_total,
            "args": {} if event.input_shapes is None else {"Input Dims": event.input_shapes},
        }
        for event in events
    ]


def nested(events: list[FunctionEvent]) -> EventList:
    """Return the events in the order of their begin, each with those inside it as its children."""
    key: Callable[[FunctionEvent], Any] = lambda e: (e.time_range.start, -e.time_range.end)  # noqa: E731
    ordered = sorted(events, key=key)
    open_by_thread: dict[int, list[FunctionEvent]] = {}
    for event in ordered:
        waiting = open_by_thread.setdefault(event.thread, [])
        while waiting and waiting[-1].time_range.end < event.time_range.end:
            waiting.pop()
        if waiting:
            event.cpu_parent = waiting[-1]
            waiting[-1].cpu_children.append(event)
        waiting.append(event)
    return EventList(ordered)


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _cut(text: str, width: int) -> str:
    return text if width < 0 or len(text) <= width else text[: max(width - 3, 0)] + "..."

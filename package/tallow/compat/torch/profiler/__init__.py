"""torch.profiler: measure the time of ops over the steps of a program."""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NoReturn, Self

from tallow.compat.absent import refusal
from tallow.compat.torch.autograd.profiler import Recorder, flops_of, kineto_available, record_function
from tallow.compat.torch.autograd.profiler_util import EventList, chrome_trace
from tallow.errors import ArgumentError, GraphError

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """Kinds of devices to measure. The time of an op on a GPU is that of its call."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class DeviceType(Enum):
    """The device of an event."""

    CPU = 0
    CUDA = 1


class ProfilerAction(Enum):
    """Actions of the profiler in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return what can be measured."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a function from the number of a step to what the profiler does in it.

    After `skip_first` steps come cycles of `wait`, `warmup` and `active` steps: `repeat` of them, or without end for 0.
    The first cycle does not wait if `skip_first_wait`.

    Raises: ArgumentError for negative numbers, and without an active step.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ArgumentError("schedule: expected numbers that are not negative, and at least one active step")

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes each trace to a file in a folder, which it makes."""
    os.makedirs(dir_name, exist_ok=True)
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handler(prof: profile) -> None:
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' * use_gzip}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class profile:
    """Measure the ops inside: with a schedule, in some of the steps, of which `step()` begins the next.

    Args:
        schedule: a function from the number of a step to a ProfilerAction; by default all is recorded.
        on_trace_ready: called with the profiler at the end of each cycle, and of the block.
        record_shapes: note the shapes of the operands.
        with_flops: note the additions and multiplications of products and convolutions.
        activities, profile_memory, with_stack, with_modules, use_cuda: have no effect.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        **_: Any,
    ) -> None:
        self.activities = set(activities) if activities else supported_activities()
        self.schedule = schedule or (lambda _: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.with_flops = record_shapes, with_flops
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self.metadata: dict[str, str] = {}
        self._recorder: Recorder | None = None
        self._is_running = False
        self._step_block: record_function | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step."""
        self._go_to(self.schedule(self.step_num))

    def stop(self) -> None:
        """End the last step."""
        was_recording = self._is_running
        self._pause()
        if was_recording and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """End a step and begin the next."""
        before = self.current_action
        self.step_num += 1
        self._leave_step()
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._pause()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._go_to(self.schedule(self.step_num))

    def _go_to(self, action: ProfilerAction) -> None:
        self.current_action = action
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            if not self._is_running:
                self._recorder = Recorder(self.record_shapes, flops_of if self.with_flops else None)
                self._recorder.start()
                self._is_running = True
            self._step_block = record_function(f"ProfilerStep#{self.step_num}")
            self._step_block.__enter__()
        else:
            self._pause()

    def _leave_step(self) -> None:
        if self._step_block is not None:
            self._step_block.__exit__()
            self._step_block = None

    def _pause(self) -> None:
        self._leave_step()
        if self._is_running and self._recorder is not None:
            self._recorder.stop()
        self._is_running = False

    def events(self) -> EventList:
        """Return the events of the latest cycle. Raises: GraphError if nothing was recorded."""
        if self._recorder is None:
            raise GraphError("the profiler has recorded nothing", hint="see its schedule")
        return self._recorder.sorted_events()

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return the sums of the latest cycle by name, or by name and shapes."""
        return self.events().key_averages(group_by_input_shape)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a text in JSON to the trace."""
        self.metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a text in JSON to the trace, before the profiler starts."""
        self.add_metadata_json(key, value)

    def get_trace_id(self) -> str | None:
        """Return the identifier of the latest cycle; None if nothing was recorded."""
        return None if self._recorder is None else f"{os.getpid():x}-{id(self._recorder):x}"

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Let a function choose the identifier of traces."""
        self.get_trace_id = callback  # type: ignore[method-assign]

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop, or go on, to record in the present cycle.

        Args:   activities: kinds of devices; ops of every device are recorded together, so that CPU must be among them.
        """
        if self._recorder is None or ProfilerActivity.CPU not in set(activities) or enable is self._is_running:
            return
        (self._recorder.start if enable else self._recorder.stop)()
        self._is_running = enable

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of the latest cycle; see `EventList.export_stacks`."""
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> NoReturn:
        """Raise UnsupportedError: memory is not recorded."""
        raise refusal("torch.profiler.profile.export_memory_timeline", hint="tracemalloc records NumPy's memory")

    def export_chrome_trace(self, path: str) -> None:
        """Write the events of the latest cycle in the format of chrome://tracing; compressed for a name in `.gz`."""
        trace = {"traceEvents": chrome_trace(self.events()), "displayTimeUnit": "ms", **self.metadata}
        content = json.dumps(trace).encode()
        with open(path, "wb") as file:
            file.write(gzip.compress(content) if path.endswith(".gz") else content)

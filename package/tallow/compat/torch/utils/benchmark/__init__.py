"""torch.utils.benchmark: measure the time of a statement."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tallow
from tallow import cuda
from tallow.compat.absent import absent
from tallow.errors import ArgumentError

__all__ = ["CallgrindStats", "Compare", "Fuzzer", "Measurement", "TaskSpec", "Timer", "timer"]

_HINT = "use Timer, which measures time"
CallgrindStats = absent("torch.utils.benchmark.CallgrindStats", _HINT)
Fuzzer = absent("torch.utils.benchmark.Fuzzer", _HINT)
_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def timer() -> float:
    """Return the time in seconds, once a GPU has done what it was given."""
    if cuda.is_available() and cuda.is_initialized():
        cuda.synchronize()
    return timeit.default_timer()


@dataclass(frozen=True)
class TaskSpec:
    """A statement to measure, and the words that name it in a table."""

    stmt: Any
    setup: Any
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The words that name it."""
        label = self.label or str(self.stmt)
        return f"{label}: {self.sub_label}" if self.sub_label else label


@dataclass
class Measurement:
    """Times of a statement.

    Attributes:
        number_per_run: how often the statement ran for each of the times.
        raw_times: in seconds.
        task_spec: what was measured.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    @property
    def times(self) -> list[float]:
        """The times of one run, in seconds."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median time of one run."""
        return float(np.median(self.times))

    @property
    def mean(self) -> float:
        """The mean time of one run."""
        return float(np.mean(self.times))

    @property
    def iqr(self) -> float:
        """The distance of the quartiles."""
        low, high = np.quantile(self.times, (0.25, 0.75))
        return float(high - low)

    @property
    def num_threads(self) -> int:
        """The number of threads."""
        return self.task_spec.num_threads

    @property
    def significant_figures(self) -> int:
        """The number of digits of the median that the spread leaves: one to five."""
        spread = max(self.iqr / 1.35 / max(len(self.raw_times), 1) ** 0.5, 1e-12 * self.median, 1e-30)
        return int(np.clip(np.floor(np.log10(self.median / spread)), 1, 5))

    @property
    def title(self) -> str:
        """The words that name what was measured."""
        return self.task_spec.title

    def as_row_name(self) -> str:
        """Return the name of its row in a table."""
        return self.task_spec.sub_label or self.task_spec.label or str(self.task_spec.stmt)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return one measurement for each task, with the times of one run of all of its measurements."""
        by_task: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            by_task.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, times, task) for task, times in by_task.items()]

    def __repr__(self) -> str:
        scale, unit = _unit(self.median)
        runs = f"{len(self.raw_times)} measurement{'s' * (len(self.raw_times) != 1)}, {self.number_per_run} runs"
        lines = [f"{type(self).__name__} object of {self.title}", f"  {self.median / scale:.2f} {unit}"]
        if len(self.raw_times) > 1:
            lines[1] = f"  Median: {self.median / scale:.2f} {unit}"
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit}")
        return "\n".join(
            [*lines, f"  {runs} per measurement, {self.num_threads} thread{'s' * (self.num_threads != 1)}"]
        )


def _unit(seconds: float) -> tuple[float, str]:
    return next((unit for unit in reversed(_UNITS) if seconds >= unit[0]), _UNITS[0])


class Timer:
    """Measure the time of a statement, after one run of it.

    Args:
        stmt, setup: Python code.
        globals: the names that the code uses.
        num_threads: of kernels, while it is measured.
        timer: returns the time in seconds.
        label, sub_label, description, env: words for tables.

    Raises: ArgumentError for another language than Python.
    """

    def __init__(
        self,
        stmt: Any = "pass",
        setup: Any = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(language).lower() not in ("python", "py") or global_setup:
            raise ArgumentError(f"Timer: language {language!r}; only Python is measured", hint="pass Python code")
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        names = {"torch": tallow, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, globals=names)

    def _measure(self, number: int) -> float:
        before = tallow.get_num_threads()
        if before != self._task_spec.num_threads:
            tallow.set_num_threads(self._task_spec.num_threads)
        try:
            return self._timer.timeit(number)
        finally:
            if before != self._task_spec.num_threads:
                tallow.set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return the time of `number` runs, as one measurement."""
        self._measure(max(number // 100, 1))
        return Measurement(number, [self._measure(number)], self._task_spec)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Return the times of blocks of runs that last `min_run_time` seconds together; `callback` gets each one."""
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time or len(times) < 2:
            times.append(self._measure(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Return the times of blocks of runs, until their quartiles are within `threshold` of the median."""
        number = self._block(0.05)
        times: list[float] = []
        while sum(times) < max_run_time:
            times.append(self._measure(number))
            if callback is not None:
                callback(number, times[-1])
            so_far = Measurement(number, times, self._task_spec)
            if len(times) > 3 and sum(times) >= min_run_time and so_far.iqr <= threshold * so_far.median:
                break
        return Measurement(number, times, self._task_spec)

    def _block(self, min_run_time: float) -> int:
        """Return how many runs take a hundredth of the time, a power of ten."""
        number, taken = 1, self._measure(2) / 2
        while taken < min_run_time / 100 and number < 10**9:
            number *= 10
            taken = self._measure(number)
        return number


class Compare:
    """A table of measurements: a row for each `sub_label`, a column for each `description`."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        self._results += results

    def trim_significant_figures(self) -> None:
        """Do nothing: times are shown with two digits after the point."""

    def colorize(self, rowwise: bool = False) -> None:
        """Do nothing: the table has no colours."""

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        columns = list(dict.fromkeys(m.task_spec.description or "" for m in merged))
        rows: dict[str, dict[str, float]] = {}
        for m in merged:
            rows.setdefault(m.as_row_name(), {})[m.task_spec.description or ""] = m.median
        scale, unit = _unit(min((m.median for m in merged), default=1.0))
        lines = [["", *columns]]
        lines += [[name, *(f"{t[c] / scale:.2f}" if c in t else "" for c in columns)] for name, t in rows.items()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [" | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([*text, f"Times are in {unit}."])

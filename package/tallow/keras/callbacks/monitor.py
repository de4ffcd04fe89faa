"""What callbacks share that watch a metric for getting better."""

from __future__ import annotations

import warnings
from typing import Any

from tallow.errors import ArgumentError
from tallow.keras.callbacks.callback import Callback, Logs


class MonitorCallback(Callback):
    """The base of callbacks that compare a metric with its best value so far.

    Args:
        monitor: the metric's name in `history`.
        mode: "min" or "max" is better; "auto" asks the metric.
        baseline: a value to start from.
        min_delta: how much better it must be to count.

    Raises:  ArgumentError for another mode, and, once there are values, for a metric that cannot say what is better
    """

    def __init__(
        self, monitor: str = "val_loss", mode: str = "auto", baseline: float | None = None, min_delta: float = 0.0
    ) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(f"{type(self).__name__}: mode={mode!r}", mend='use "auto", "min" or "max"')
        self.monitor = monitor
        self.mode = mode
        self.best = baseline
        self.min_delta = abs(min_delta)
        self._sign = {"min": -1, "max": 1}.get(mode, 0)  # 0 until the metrics are there to be asked

    def is_better(self, value: float, reference: float | None) -> bool:
        if reference is None:
            return True
        self._sign = self._sign or self._better_sign()
        return self._sign * (value - reference) > self.min_delta

    def value(self, logs: Logs | None) -> Any:
        """The metric's value; where there is none, a warning and None."""
        logs = logs or {}
        if self.monitor not in logs:
            warnings.warn(
                f"{type(self).__name__} watches {self.monitor!r}, which is not there; there are: {', '.join(logs)}",
                stacklevel=4,
            )
        return logs.get(self.monitor)

    def _better_sign(self) -> int:
        name = self.monitor.removeprefix("val_")
        if name == "loss" or name.endswith("_loss"):
            return -1
        found = getattr(self.model, "metrics", ())
        for metric in (single for each in found for single in getattr(each, "metrics", [each])):
            if name == metric.name or name.endswith(f"_{metric.name}"):
                direction = getattr(metric, "direction", None)
                if direction is not None:
                    return 1 if direction == "up" else -1
        raise ArgumentError(
            f"{type(self).__name__}: whether a high or a low {self.monitor!r} is better is not known",
            mend='pass mode="max" or mode="min"',
        )

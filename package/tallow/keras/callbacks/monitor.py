"""Base class of callbacks that watch a metric."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError, warn
from tallow.keras.callbacks.callback import Callback, Logs


class MonitorCallback(Callback):
    """Base class of callbacks that compare a metric with its best value so far.

    Args:
        monitor: the metric's name in `history`.
        mode: "min" or "max" is better; "auto" asks the metric.
        baseline: the initial best value.
        min_delta: the smallest change that counts as an improvement.

    Raises:  ArgumentError for an invalid mode, and, once there are values, for a metric without a better direction
    """

    def __init__(
        self, monitor: str = "val_loss", mode: str = "auto", baseline: float | None = None, min_delta: float = 0.0
    ) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(f"{type(self).__name__}: mode={mode!r}", hint='use "auto", "min" or "max"')
        self.monitor = monitor
        self.mode = mode
        self.best = baseline
        self.min_delta = abs(min_delta)
        self._sign = {"min": -1, "max": 1}.get(mode, 0)  # 0 until the metrics exist and can be asked

    def is_better(self, value: float, reference: float | None) -> bool:
        """Return whether `value` is better than `reference`."""
        if reference is None:
            return True
        self._sign = self._sign or self._better_sign()
        return self._sign * (value - reference) > self.min_delta

    def value(self, logs: Logs | None) -> Any:
        """Return the metric's value; if it is missing, warn and return None."""
        logs = logs or {}
        if self.monitor not in logs:
            warn(
                f"{type(self).__name__}: metric {self.monitor!r} is not available; available metrics: {', '.join(logs)}"
            )
        return logs.get(self.monitor)

    def _better_sign(self) -> int:
        name = self.monitor.removeprefix("val_")
        if name == "loss" or name.endswith("_loss"):
            return -1
        metrics = getattr(self.model, "metrics", ())
        for metric in (single for group in metrics for single in getattr(group, "metrics", [group])):
            if name == metric.name or name.endswith(f"_{metric.name}"):
                direction = getattr(metric, "direction", None)
                if direction is not None:
                    return 1 if direction == "up" else -1
        raise ArgumentError(
            f"{type(self).__name__}: it is unknown whether higher or lower {self.monitor!r} is better",
            hint='pass mode="max" or mode="min"',
        )

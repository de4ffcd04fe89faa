"""Change the learning rate between epochs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.callbacks.callback import Callback, Logs
from tallow.keras.callbacks.monitor import MonitorCallback
from tallow.keras.messages import print_message


class LearningRateScheduler(Callback):
    """Set the learning rate before each epoch, and record it in `history` as "learning_rate".

    Args:
        schedule: a function of the epoch, from 0, and the current learning rate; or of the epoch alone.
        verbose: 1 prints the rate.

    Raises:  ArgumentTypeError if the function does not return a number
    """

    def __init__(self, schedule: Callable[..., Any], verbose: int = 0) -> None:
        super().__init__()
        self.schedule = schedule
        self.verbose = verbose
        self._takes_rate = _accepts_two(schedule)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        arguments = (epoch, self.model.optimizer.learning_rate) if self._takes_rate else (epoch,)
        rate = self.schedule(*arguments)
        try:
            rate = float(rate)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"LearningRateScheduler: the schedule returned {rate!r}, not a number") from error
        self.model.optimizer.learning_rate = rate
        if self.verbose:
            print_message(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = self.model.optimizer.learning_rate


def _accepts_two(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(0, 0.0)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


class ReduceLROnPlateau(MonitorCallback):
    """Multiply the learning rate by `factor` when a metric has not improved for `patience` epochs.

    Args:
        monitor, mode, min_delta: as in `MonitorCallback`.
        factor: below 1.
        verbose: 1 prints each change.
        cooldown: the number of epochs to ignore after a change.
        min_lr: the lower bound of the learning rate.

    Raises:  ArgumentError for a factor of 1 or more
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta=min_delta)
        if factor >= 1:
            raise ArgumentError(f"ReduceLROnPlateau: factor must be below 1, not {factor}")
        self.factor = factor
        self.patience = patience
        self.verbose = verbose
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.wait = 0
        self._cooling = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.best = None
        self.wait = 0
        self._cooling = 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = self.model.optimizer.learning_rate
        current = self.value(logs)
        if current is None:
            return
        if self._cooling:
            self._cooling -= 1
            self.wait = 0
        if self.is_better(current, self.best):
            self.best = current
            self.wait = 0
        elif not self._cooling:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(epoch)

    def _reduce(self, epoch: int) -> None:
        optimizer = self.model.optimizer
        if optimizer.learning_rate <= self.min_lr:
            return
        optimizer.learning_rate = max(optimizer.learning_rate * self.factor, self.min_lr)
        self._cooling = self.cooldown
        self.wait = 0
        if self.verbose:
            rate = optimizer.learning_rate
            print_message(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {rate}.")

"""Saving the model while it is trained."""

from __future__ import annotations

import os
import warnings

from tallow.errors import ArgumentError
from tallow.keras.callbacks.callback import Logs
from tallow.keras.callbacks.monitor import MonitorCallback
from tallow.keras.messages import print_message


class ModelCheckpoint(MonitorCallback):
    """Saves the model, or its weights, after every epoch or so many batches.

    Args:
        filepath: where to; `{epoch}`, counted from 1, `{batch}` and the metrics are filled in as by `str.format`:
            "{epoch:02d}-{val_loss:.2f}.keras". Folders on the way are made.
        monitor, mode: as `MonitorCallback`; they matter to `save_best_only`.
        verbose: 1 says what is done.
        save_best_only: save only where the metric is better than it has been.
        save_weights_only: `save_weights` instead of `save`.
        save_freq: "epoch", or a number of batches.
        initial_value_threshold: what the first value must be better than.

    Raises:  ArgumentError for another `save_freq` or extension, and for a `filepath` with a metric that is not there
    """

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: str | int = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode, initial_value_threshold)
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ArgumentError(f"ModelCheckpoint: save_freq={save_freq!r}", mend='use "epoch" or a number of batches')
        self.filepath = os.fspath(filepath)
        suffix = ".weights.h5" if save_weights_only else ".keras"
        if not self.filepath.endswith((suffix, ".safetensors") if save_weights_only else suffix):
            raise ArgumentError(  # now, and not after the first epoch
                f"ModelCheckpoint: cannot save {'weights' if save_weights_only else 'a model'} as {self.filepath!r}",
                mend=f"let it end in {suffix}",
            )
        self.verbose = verbose
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self.save_freq = save_freq
        self._batches = 0
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._batches += 1
        if self.save_freq != "epoch" and self._batches % int(self.save_freq) == 0:
            self._save(self._epoch, {"batch": batch + 1} | (logs or {}))

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.save_freq == "epoch":
            self._save(epoch, logs or {})

    def _save(self, epoch: int, logs: Logs) -> None:
        path = self._path(epoch, logs)
        if not self._is_due(epoch, logs, path):
            return
        if folder := os.path.dirname(path):
            os.makedirs(folder, exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)

    def _path(self, epoch: int, logs: Logs) -> str:
        try:
            return self.filepath.format(epoch=epoch + 1, **logs)
        except KeyError as error:
            raise ArgumentError(
                f"ModelCheckpoint: {self.filepath!r} names {error}, which is not there",
                mend=f"use epoch, or one of: {', '.join(logs)}",
            ) from error

    def _is_due(self, epoch: int, logs: Logs, path: str) -> bool:
        if not self.save_best_only:
            self._say(epoch, f"saving model to {path}")
            return True
        current = logs.get(self.monitor)
        if current is None:
            warnings.warn(f"ModelCheckpoint saves every model: {self.monitor!r} is not there", stacklevel=5)
            return True
        best = "None" if self.best is None else f"{self.best:.5f}"
        if not self.is_better(current, self.best):
            self._say(epoch, f"{self.monitor} did not improve from {best}")
            return False
        self._say(epoch, f"{self.monitor} improved from {best} to {current:.5f}, saving model to {path}")
        self.best = current
        return True

    def _say(self, epoch: int, what: str) -> None:
        if self.verbose:
            print_message(f"\nEpoch {epoch + 1}: {what}")

"""Save the model during training."""

from __future__ import annotations

import os

from tallow.errors import ArgumentError, warn
from tallow.io.atomic import made_folder
from tallow.keras.callbacks.callback import Logs
from tallow.keras.callbacks.monitor import MonitorCallback
from tallow.keras.messages import print_message


class ModelCheckpoint(MonitorCallback):
    """Save the model, or its weights, after every epoch or every few batches.

    Args:
        filepath: a path in which `str.format` fills in `{epoch}`, counted from 1, `{batch}` and the metrics, such as
            "{epoch:02d}-{val_loss:.2f}.keras". Missing folders are created.
        monitor, mode: as in `MonitorCallback`, for `save_best_only`.
        verbose: 1 prints a message per save.
        save_best_only: save only if the metric improved.
        save_weights_only: call `save_weights` instead of `save`.
        save_freq: "epoch", or a number of batches.
        initial_value_threshold: a value that the first one must improve on.

    Raises:  ArgumentError for an invalid `save_freq` or extension, and for an unknown metric in `filepath`
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
            raise ArgumentError(f"ModelCheckpoint: save_freq={save_freq!r}", hint='use "epoch" or a number of batches')
        self.filepath = os.fspath(filepath)
        suffix = ".weights.h5" if save_weights_only else ".keras"
        if not self.filepath.endswith((suffix, ".safetensors") if save_weights_only else suffix):
            raise ArgumentError(  # raised here rather than after the first epoch
                f"ModelCheckpoint: cannot save {'weights' if save_weights_only else 'a model'} as {self.filepath!r}",
                hint=f"use a path that ends in {suffix}",
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
        with made_folder(os.path.dirname(path) or os.curdir):
            if self.save_weights_only:
                self.model.save_weights(path, overwrite=True)
            else:
                self.model.save(path, overwrite=True)

    def _path(self, epoch: int, logs: Logs) -> str:
        try:
            return self.filepath.format(epoch=epoch + 1, **logs)
        except KeyError as error:
            raise ArgumentError(
                f"ModelCheckpoint: {self.filepath!r} contains {error}, which is not a known value",
                hint=f"use epoch, or one of: {', '.join(logs)}",
            ) from error

    def _is_due(self, epoch: int, logs: Logs, path: str) -> bool:
        if not self.save_best_only:
            self._print(epoch, f"saving model to {path}")
            return True
        current = logs.get(self.monitor)
        if current is None:
            warn(f"ModelCheckpoint saves every time: metric {self.monitor!r} is not available")
            return True
        best = "None" if self.best is None else f"{self.best:.5f}"
        if not self.is_better(current, self.best):
            self._print(epoch, f"{self.monitor} did not improve from {best}")
            return False
        self._print(epoch, f"{self.monitor} improved from {best} to {current:.5f}, saving model to {path}")
        self.best = current
        return True

    def _print(self, epoch: int, message: str) -> None:
        if self.verbose:
            print_message(f"\nEpoch {epoch + 1}: {message}")

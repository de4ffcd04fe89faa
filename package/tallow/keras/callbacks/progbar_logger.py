"""The progress bar of `fit`, `evaluate` and `predict`."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from tallow.keras.callbacks.callback import Callback, Logs
from tallow.keras.messages import print_message
from tallow.keras.progress import Progbar, can_overwrite


class ProgbarLogger(Callback):
    """Show a progress bar for each epoch, evaluation or prediction; `fit` adds it unless verbose is 0."""

    reads_tensors: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.verbose = 1
        self._epochs = 1
        self._target: int | None = None
        self._seen = 0
        self._bar: Progbar | None = None
        self._in_fit = False  # validation within fit shows no bar

    def set_params(self, params: dict[str, Any]) -> None:
        super().set_params(params)
        self.verbose = resolve_verbosity(params.get("verbose", "auto"))
        self._epochs = params.get("epochs", 1)
        self._target = params.get("steps")

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._in_fit = True

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        if self.verbose and self._epochs > 1:
            print_message(f"Epoch {epoch + 1}/{self._epochs}")
        self._begin()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._end(logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        if not self._in_fit:
            self._begin()

    def on_test_end(self, logs: Logs | None = None) -> None:
        if not self._in_fit:
            self._end(logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._begin()

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._end(logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._advance(batch, logs)

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if not self._in_fit:
            self._advance(batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._advance(batch, None)

    def abandon(self) -> None:
        """End the line of a bar that will not be completed."""
        if self._bar is not None:
            self._bar.abandon()

    def _begin(self) -> None:
        self._seen = 0
        self._bar = Progbar(self._target, verbose=self.verbose, stateless_metrics=())

    def _advance(self, batch: int, logs: Logs | None) -> None:
        self._seen = batch + 1
        if self._bar is not None:
            self._bar.update(self._seen, sorted((logs or {}).items()), finalize=False)

    def _end(self, logs: Logs | None) -> None:
        if self._bar is not None:
            self._target = self._bar.target = self._target or self._seen
            self._bar.update(self._target, (logs or {}).items(), finalize=True)
            self._bar = None


def resolve_verbosity(verbose: Any) -> int:
    """Resolve "auto": a bar (1) if the output can overwrite a line, otherwise one line per epoch (2)."""
    if verbose == "auto":
        return 1 if can_overwrite(sys.stdout) else 2
    return int(verbose)

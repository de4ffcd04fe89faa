"""Measuring with the moving averages of the weights while training goes on with the weights."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.autograd.graph import note_write
from tallow.errors import ArgumentError
from tallow.keras.callbacks.callback import Callback, Logs


class SwapEMAWeights(Callback):
    """Puts the averages of an optimizer with `use_ema=True` in the weights' place while the model is evaluated or
    predicts, so that validation measures them.

    Args:
        swap_on_epoch: also between epochs, so that a ModelCheckpoint behind this callback saves the averages.

    Raises:  ArgumentError for an optimizer without averages, when they are needed
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        super().__init__()
        self.swap_on_epoch = swap_on_epoch
        self._are_averages = False  # whether the model has the averages in place of its weights

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._show(False)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._show(True)
            if epoch == self.params["epochs"] - 1:  # the end of training takes what the optimizer has for the averages
                optimizer = self._optimizer()
                for param, average in optimizer.averages.items():
                    average[...] = dtypes.widen(param.array)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._show(True)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._show(False)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._show(True)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._show(False)

    def _show(self, averages: bool) -> None:
        if averages == self._are_averages:
            return
        self._are_averages = averages
        for param, average in self._optimizer().averages.items():
            weights = dtypes.widen(param.array).copy()
            param.array[...] = dtypes.cast(average, param.dtype)
            note_write(param)
            average[...] = weights

    def _optimizer(self) -> Any:
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        if not getattr(optimizer, "use_ema", False):
            raise ArgumentError("SwapEMAWeights: the optimizer keeps no averages", mend="make it with use_ema=True")
        return optimizer

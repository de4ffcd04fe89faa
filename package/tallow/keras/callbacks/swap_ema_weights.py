"""Evaluate with the moving averages of the weights during training."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.errors import ArgumentError
from tallow.keras.callbacks.callback import Callback, Logs
from tallow.tape.graph import note_write


class SwapEMAWeights(Callback):
    """Swap the weights with the averages of an optimizer with `use_ema=True` during evaluation and prediction.

    Args:
        swap_on_epoch: also swap between epochs, so that a ModelCheckpoint after this callback saves the averages.

    Raises:  ArgumentError for an optimizer without averages, when they are needed
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        super().__init__()
        self.swap_on_epoch = swap_on_epoch
        self._are_averages = False  # whether the weights are currently the averages

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._set_averages(False)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._set_averages(True)
            if (
                epoch == self.params["epochs"] - 1
            ):  # finalize_variable_values assigns the optimizer's averages at the end of training
                optimizer = self._optimizer()
                for param, average in optimizer.averages.items():
                    average[...] = dtypes.widen(param.array)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._set_averages(True)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._set_averages(False)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._set_averages(True)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._set_averages(False)

    def _set_averages(self, averages: bool) -> None:
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
            raise ArgumentError(
                "SwapEMAWeights: the optimizer has no moving averages", hint="create the optimizer with use_ema=True"
            )
        return optimizer

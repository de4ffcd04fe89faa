"""Stop training when a metric stops improving."""

from __future__ import annotations

from tallow.core.tensor import Tensor
from tallow.keras.callbacks.callback import Logs
from tallow.keras.callbacks.monitor import MonitorCallback
from tallow.keras.messages import print_message


class EarlyStopping(MonitorCallback):
    """Stop training when a metric has not improved for `patience` epochs.

    Args:
        monitor, mode, min_delta: as in `MonitorCallback`.
        verbose: 1 prints a message when training stops.
        baseline: epochs that are not better than this do not count as an improvement.
        restore_best_weights: restore the weights of the best epoch at the end.
        start_from_epoch: ignore the epochs before this one, counted from 0.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0.0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta=min_delta)
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.restore_best_weights = restore_best_weights
        self.start_from_epoch = start_from_epoch
        self._begin()

    def _begin(self) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.best = None
        self.best_epoch = 0
        self.best_weights: dict[str, Tensor] | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._begin()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        current = self.value(logs)
        if current is None or epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self.is_better(current, self.best):
            self.best, self.best_epoch = current, epoch
            self._keep_weights()
            if self.baseline is None or self.is_better(current, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def _keep_weights(self) -> None:
        if self.restore_best_weights:
            self.best_weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.stopped_epoch and self.verbose:
            print_message(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                print_message(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            self.model.load_state_dict(self.best_weights)

"""Stop training when the loss is not finite."""

from __future__ import annotations

from math import isfinite

from tallow.errors import NumericError
from tallow.keras.callbacks.callback import Callback, Logs
from tallow.keras.messages import print_message


class TerminateOnNaN(Callback):
    """Stop training when the loss is NaN or infinite, before all weights become NaN.

    Args:
        raise_error: raise a NumericError instead of stopping with a message.
    """

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is None or isfinite(loss):
            return
        if self.raise_error:
            raise NumericError(
                f"the loss is {loss} at batch {batch}",
                hint="lower the learning rate, clip gradients (clipnorm=1.0), or look for NaN in the data",
            )
        print_message(f"Batch {batch}: Invalid loss, terminating training")
        self.model.stop_training = True

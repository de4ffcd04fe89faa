"""The base class of callbacks, and the list of callbacks of one `fit`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError

Logs = dict[str, Any]
BATCH_HOOKS = tuple(
    f"on_{phase}_batch_{moment}" for phase in ("train", "test", "predict") for moment in ("begin", "end")
)


class Callback:
    """Base class of actions during `fit`, `evaluate` or `predict`; override the hooks you need.

    Epochs and batches count from 0. `logs` are the metrics so far, as Python numbers; entries that a callback adds to
    the logs of `on_epoch_end` appear in `history`.

    Attributes:
        model: the model; setting `model.stop_training` ends the training after the current batch.
        params: {"verbose": ..., "epochs": ..., "steps": ...}; the number of steps is None if unknown.
    """

    reads_tensors: ClassVar[bool] = (
        False  # logs are passed as tensors, so that values are copied from the device only when needed
    )

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Set the parameters of the run."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Set the model."""
        self.model = model

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Hook before a training batch, under its older name."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Hook after a training batch, under its older name."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Hook before an epoch of `fit`."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Hook after an epoch of `fit`, with its metrics."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Hook before a training batch."""
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Hook after a training batch."""
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Hook before a batch of `evaluate`."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Hook after a batch of `evaluate`."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Hook before a batch of `predict`."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Hook after a batch of `predict`; `logs` hold its outputs."""

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Hook at the start of `fit`."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Hook at the end of `fit`."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Hook at the start of `evaluate`."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Hook at the end of `evaluate`."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Hook at the start of `predict`."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Hook at the end of `predict`."""


class CallbackList(Callback):
    """Several callbacks as one, called in order. Callbacks without batch hooks add no cost per batch."""

    def __init__(self, callbacks: Iterable[Any] | Any | None, model: Any, **params: Any) -> None:
        super().__init__()
        items = [] if callbacks is None else callbacks
        self.callbacks: list[Any] = list(items) if isinstance(items, Iterable) else [items]
        for callback in self.callbacks:
            if isinstance(callback, type) or not hasattr(callback, "set_model"):
                raise ArgumentTypeError(
                    f"{callback!r} is not a callback", hint="pass instances of keras.callbacks.Callback"
                )
        self._listeners = {hook: [c for c in self.callbacks if _listens(c, hook)] for hook in BATCH_HOOKS}
        self.set_model(model)
        self.set_params(params)

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        for callback in self.callbacks:
            callback.set_model(model)

    def set_params(self, params: dict[str, Any]) -> None:
        super().set_params(params)
        for callback in self.callbacks:
            callback.set_params(params)

    def _notify(self, hook: str, *position: int, logs: Mapping[str, Any] | None = None) -> None:
        numbers = as_numbers(logs)
        for callback in self.callbacks:
            getattr(callback, hook)(*position, logs=numbers)

    def _notify_listeners(self, hook: str, batch: int, logs: Mapping[str, Any] | None) -> None:
        numbers: Logs | None = None
        for callback in self._listeners[hook]:
            if getattr(callback, "reads_tensors", False):
                getattr(callback, hook)(batch, logs=logs)
            else:
                numbers = as_numbers(logs) if numbers is None else numbers
                getattr(callback, hook)(batch, logs=numbers)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._notify("on_epoch_begin", epoch, logs=logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._notify("on_epoch_end", epoch, logs=logs)

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._notify_listeners("on_train_batch_begin", batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._notify_listeners("on_train_batch_end", batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._notify_listeners("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._notify_listeners("on_test_batch_end", batch, logs)

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._notify_listeners("on_predict_batch_begin", batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        for callback in self._listeners["on_predict_batch_end"]:  # the logs are outputs, not metrics
            callback.on_predict_batch_end(batch, logs=logs)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._notify("on_train_begin", logs=logs)

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._notify("on_train_end", logs=logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._notify("on_test_begin", logs=logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._notify("on_test_end", logs=logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._notify("on_predict_begin", logs=logs)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._notify("on_predict_end", logs=logs)


def flatten_logs(logs: Mapping[str, Any]) -> Logs:
    """Flatten the logs of a step: replace each nested dict, such as "compile_metrics", by its entries."""
    flat: Logs = {}
    for name, value in logs.items():
        flat.update(flatten_logs(value) if isinstance(value, Mapping) else {name: value})
    return flat


def as_numbers(logs: Mapping[str, Any] | None) -> Logs:
    """Return the logs with Python numbers instead of tensors, sorted by name as Keras shows them."""
    return {name: _as_number(logs[name]) for name in sorted(logs)} if logs else {}


def _as_number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else value


def _listens(callback: Any, hook: str) -> bool:
    """Return whether a callback overrides a batch hook, under either of its names."""
    older = hook.replace("_train", "")
    return any(
        getattr(getattr(callback, name), "__func__", None) is not getattr(Callback, name)
        for name in {hook, older}
        if hasattr(Callback, name)
    )

"""What a callback can do, and the list of those that a call of `fit` has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tallow.errors import ArgumentTypeError
from tallow.tensor import Tensor

Logs = dict[str, Any]
BATCH_HOOKS = tuple(
    f"on_{phase}_batch_{moment}" for phase in ("train", "test", "predict") for moment in ("begin", "end")
)


class Callback:
    """Something to be done while `fit`, `evaluate` or `predict` run: override the hooks that matter.

    Epochs and batches are counted from 0. `logs` are the metrics so far, as Python numbers; what a callback adds to
    those of `on_epoch_end` goes into `history`.

    Attributes:
        model: the model that is trained; setting `model.stop_training` ends the training after this batch.
        params: {"verbose": ..., "epochs": ..., "steps": ...}, with None for a number of steps that is not known.
    """

    reads_tensors: ClassVar[bool] = False  # takes logs as they are; a number is read off the device when it is needed

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params

    def set_model(self, model: Any) -> None:
        self.model = model

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """The older name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """The older name of `on_train_batch_end`."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None: ...

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None: ...

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None: ...

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None: ...

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None: ...

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None: ...

    def on_train_begin(self, logs: Logs | None = None) -> None: ...

    def on_train_end(self, logs: Logs | None = None) -> None: ...

    def on_test_begin(self, logs: Logs | None = None) -> None: ...

    def on_test_end(self, logs: Logs | None = None) -> None: ...

    def on_predict_begin(self, logs: Logs | None = None) -> None: ...

    def on_predict_end(self, logs: Logs | None = None) -> None: ...


class CallbackList(Callback):
    """Several callbacks as one, in their order. Those without a hook for batches cost nothing at a batch."""

    def __init__(self, callbacks: Iterable[Any] | Any | None, model: Any, **params: Any) -> None:
        super().__init__()
        given = [] if callbacks is None else callbacks
        self.callbacks: list[Any] = list(given) if isinstance(given, Iterable) else [given]
        for callback in self.callbacks:
            if isinstance(callback, type) or not hasattr(callback, "set_model"):
                raise ArgumentTypeError(
                    f"{callback!r} is not a callback", mend="give instances of subclasses of keras.callbacks.Callback"
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

    def _tell(self, hook: str, *where: int, logs: Mapping[str, Any] | None = None) -> None:
        numbers = as_numbers(logs)
        for callback in self.callbacks:
            getattr(callback, hook)(*where, logs=numbers)

    def _tell_listeners(self, hook: str, batch: int, logs: Mapping[str, Any] | None) -> None:
        numbers: Logs | None = None
        for callback in self._listeners[hook]:
            if getattr(callback, "reads_tensors", False):
                getattr(callback, hook)(batch, logs=logs)
            else:
                numbers = as_numbers(logs) if numbers is None else numbers
                getattr(callback, hook)(batch, logs=numbers)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._tell("on_epoch_begin", epoch, logs=logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._tell("on_epoch_end", epoch, logs=logs)

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._tell_listeners("on_train_batch_begin", batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._tell_listeners("on_train_batch_end", batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._tell_listeners("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._tell_listeners("on_test_batch_end", batch, logs)

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._tell_listeners("on_predict_batch_begin", batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        for callback in self._listeners["on_predict_batch_end"]:  # the outputs, which are no metrics to show
            callback.on_predict_batch_end(batch, logs=logs)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._tell("on_train_begin", logs=logs)

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._tell("on_train_end", logs=logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._tell("on_test_begin", logs=logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._tell("on_test_end", logs=logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._tell("on_predict_begin", logs=logs)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._tell("on_predict_end", logs=logs)


def spread(logs: Mapping[str, Any]) -> Logs:
    """The logs of a step, each dict among them, such as that of "compile_metrics", in place of its name."""
    flat: Logs = {}
    for name, value in logs.items():
        flat.update(spread(value) if isinstance(value, Mapping) else {name: value})
    return flat


def as_numbers(logs: Mapping[str, Any] | None) -> Logs:
    """The same with Python numbers for tensors, sorted by name, as Keras shows them."""
    return {name: _as_number(logs[name]) for name in sorted(logs)} if logs else {}


def _as_number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else value


def _listens(callback: Any, hook: str) -> bool:
    """Whether the callback has a hook of its own for batches, under either name."""
    older = hook.replace("_train", "")
    return any(
        getattr(getattr(callback, name), "__func__", None) is not getattr(Callback, name)
        for name in {hook, older}
        if hasattr(Callback, name)
    )

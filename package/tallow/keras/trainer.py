"""fit, evaluate and predict: the training loops of a Keras model."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tallow as tl
from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, warn
from tallow.keras.batches import (
    Batch,
    Epochs,
    as_arrays,
    as_tensor,
    batches,
    class_weights,
    pack_x_y_sample_weight,
    split,
    validation_batches,
)
from tallow.keras.callbacks import CallbackList, History, ProgbarLogger
from tallow.keras.callbacks.callback import as_numbers, flatten_logs
from tallow.keras.settings import max_epochs
from tallow.keras.steps import Logs, Steps
from tallow.keras.structure import map_structure


class Trainer(Steps):
    """Training loops for a module, mixed in before it: `class Model(Trainer, nn.Module)`.

    Attributes:
        stop_training: a callback may set it to end `fit` after the current batch.
        resume_epoch: a callback may set it at the start of training, to the epoch to resume from.
        history: the `History` of the last `fit`.
    """

    stop_training = False
    stop_evaluating = False
    stop_predicting = False
    resume_epoch: int | None = None
    history: History | None = None
    _model_device: Any = None

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | str = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Container[int] = 1,
    ) -> History:
        """Train for a number of epochs, each a pass over the data.

        Args:
            x: arrays, tensors or lists of numbers, in a list or dict for several inputs; or a `tallow.data.Dataset`, or
                an iterable of batches (x, y) or (x, y, sample_weight), such as a DataLoader.
            batch_size: the number of samples per batch, 32 by default.
            verbose: 0 for no output, 1 for a progress bar, 2 for one line per epoch; "auto" is 1 in a terminal or
                notebook, else 2.
            validation_split: the fraction of the samples, taken from the end, to use for validation only.
            validation_data: (x, y) or (x, y, sample_weight) for validation, or an iterable of batches.
            shuffle: use a new order of samples each epoch, from the generator that `tallow.manual_seed` seeds.
            class_weight: the weight of each class in the loss.
            validation_freq: the number of epochs between validations, or a list of epochs, counted from 1.

        Returns: the metrics of each epoch; also available as `model.history`, which has the epochs so far if training
                 is
            interrupted. An interrupt (Ctrl-C) propagates, without a call of the callbacks' `on_train_end`.
        Raises:  ArgumentError for data that does not fit together or to the model, and before `compile`
        """
        self._check_compiled("fit")
        limit = max_epochs()
        if limit is not None and limit < epochs:
            warn(f"the setting max_epochs limits training to {limit} epochs")
            epochs = limit
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split((x, y, sample_weight), validation_split)
        training = Epochs(
            batches(
                x, y, sample_weight, batch_size=batch_size, steps=steps_per_epoch, shuffle=shuffle,
                class_weight=class_weight,
            ),
            steps_per_epoch,
        )  # fmt: skip
        validation = None
        if validation_data is not None:
            source = validation_batches(validation_data, validation_batch_size or batch_size, validation_steps)
            validation = Epochs(source, validation_steps)
        if isinstance(validation_freq, int) and validation_freq < 1:
            raise ArgumentError(f"validation_freq must be 1 or more, or a list of epochs, not {validation_freq}")
        self._prepare(training.source.first())
        listeners = self._callbacks(callbacks, verbose, epochs, training.steps, with_history=True)
        self.stop_training, self.resume_epoch = False, None
        logs: Logs = {}
        with _close_bar_on_error(listeners):
            listeners.on_train_begin()
            begin = initial_epoch if self.resume_epoch is None else self.resume_epoch
            for epoch in range(begin, epochs):
                listeners.on_epoch_begin(epoch)
                logs = self._train_epoch(training, listeners)
                if validation is not None and _is_due(epoch, validation_freq):
                    results = self._test_epoch(validation, listeners)
                    logs |= {f"val_{name}": value for name, value in results.items()}
                listeners.on_epoch_end(epoch, logs)
                if self.stop_training:
                    break
            if epochs > begin and self.optimizer is not None:
                self.optimizer.finalize_variable_values(())
            listeners.on_train_end(logs)
        assert self.history is not None
        return self.history

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Return the loss and the metrics of this data: a list, loss first, or a number if there are no metrics.

        Args:    as in `fit`; return_dict: return a dict by name

        Raises:  as in `fit`
        """
        self._check_compiled("evaluate")
        source = Epochs(batches(x, y, sample_weight, batch_size=batch_size, steps=steps), steps)
        self._prepare(source.source.first(), training=False)
        listeners = self._callbacks(callbacks, verbose, 1, source.steps)
        with _close_bar_on_error(listeners):
            logs = self._test_epoch(source, listeners)
        return logs if return_dict else self._ordered_values(logs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """Return the output for this data, as NumPy arrays in the structure of the model's outputs.

        Args:    as in `fit`; targets that an iterable yields are ignored

        Raises:  as in `fit`
        """
        source = Epochs(batches(x, batch_size=batch_size, steps=steps), steps)
        self._prepare(source.source.first(), training=False)
        listeners = self._callbacks(callbacks, verbose, 1, source.steps)
        parts: list[Any] = []
        self.stop_predicting = False
        with _close_bar_on_error(listeners), self._inference_mode():
            listeners.on_predict_begin()
            for step, data in enumerate(source.epoch()):
                listeners.on_predict_batch_begin(step)
                parts.append(self.predict_step(self._step_data(data)))
                listeners.on_predict_batch_end(step, {"outputs": parts[-1]})
                if self.stop_predicting:
                    break
            listeners.on_predict_end()
        return _concatenate(parts)

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Train on a single batch; return its metrics, as `evaluate` does."""
        self._check_compiled("train_on_batch")
        data = _single_batch(x, y, sample_weight, class_weight)
        self._prepare(data)
        self.reset_metrics()
        self.train()
        try:
            logs = as_numbers(flatten_logs(self.train_step(self._step_data(data))))
        finally:
            self.eval()  # inference mode, as after `fit`
        return logs if return_dict else self._ordered_values(logs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Return the metrics of a single batch, as `evaluate` does."""
        self._check_compiled("test_on_batch")
        data = _single_batch(x, y, sample_weight)
        self._prepare(data, training=False)
        self.reset_metrics()
        with self._inference_mode():
            logs = as_numbers(flatten_logs(self.test_step(self._step_data(data))))
        return logs if return_dict else self._ordered_values(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the output for a single batch, as `predict` does."""
        data = _single_batch(x)
        self._prepare(data, training=False)
        with self._inference_mode():
            return map_structure(_as_numpy, self.predict_step(self._step_data(data)))

    # ----------------------------------------------------------------------------------------------- parts of the loops

    def _train_epoch(self, training: Epochs, listeners: CallbackList) -> Logs:
        self.reset_metrics()
        self.train()
        logs: Logs = {}
        try:
            for step, data in enumerate(training.epoch()):
                listeners.on_train_batch_begin(step)
                logs = flatten_logs(self.train_step(self._step_data(data)))
                listeners.on_train_batch_end(step, logs)
                if self.stop_training:
                    break
        finally:
            self.eval()
        return as_numbers(logs)

    def _test_epoch(self, source: Epochs, listeners: CallbackList) -> Logs:
        self.stop_evaluating = False
        source.restart()  # every epoch is evaluated with the same samples
        listeners.on_test_begin()
        self.reset_metrics()
        logs: Logs = {}
        with self._inference_mode():
            for step, data in enumerate(source.epoch()):
                listeners.on_test_batch_begin(step)
                logs = flatten_logs(self.test_step(self._step_data(data)))
                listeners.on_test_batch_end(step, logs)
                if self.stop_evaluating:
                    break
        logs = as_numbers(logs)
        listeners.on_test_end(logs)
        return logs

    @contextmanager
    def _inference_mode(self) -> Iterator[None]:
        """Disable gradients and set inference mode."""
        self.eval()
        with tl.no_grad():
            yield

    def _prepare(self, first: Batch, training: bool = True) -> None:
        """Create the weights and optimizer state that need a first batch."""
        self._model_device = self._parameter_device()
        build = getattr(self, "_ensure_built", None)
        if build is not None:
            build(self._to_model_device(first[0]))
            self._model_device = self._parameter_device()
        if training:
            self._build_optimizer()

    def _step_data(self, data: Batch) -> Any:
        """Return the batch in the form that steps take, without missing parts, on the device of the parameters."""
        return pack_x_y_sample_weight(*self._to_model_device(data))

    def _to_model_device(self, data: Any) -> Any:
        device = self._model_device

        def move(tensor: Tensor | None) -> Tensor | None:
            return tensor if tensor is None or device is None or tensor.device == device else tensor.to(device)

        return map_structure(move, data)

    def _parameter_device(self) -> devices.device | None:
        """Return the device where the parameters are or will be created; None leaves batches in place."""
        return next((param.device for param in self.parameters()), devices.default.device)

    def _callbacks(
        self, callbacks: Any, verbose: int | str, epochs: int, steps: int | None, with_history: bool = False
    ) -> CallbackList:
        items = [] if callbacks is None else list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
        if with_history and not any(isinstance(callback, History) for callback in items):
            items.append(History())
        if verbose and not any(isinstance(callback, ProgbarLogger) for callback in items):
            items.append(ProgbarLogger())
        return CallbackList(items, self, verbose=verbose, epochs=epochs, steps=steps)

    def _ordered_values(self, logs: Logs) -> Any:
        """Return the logs in the order of `metrics`, followed by other names in alphabetical order, as Keras does.

        A single value is returned without a list.
        """
        order = {name: None for metric in self.metrics for name in getattr(metric, "names", [metric.name])}
        values = [logs[name] for name in order if name in logs]
        values += [value for name, value in sorted(logs.items()) if name not in order]
        return values[0] if len(values) == 1 else values

    def _check_compiled(self, what: str) -> None:
        if not self.compiled:
            raise ArgumentError(
                f"{what} was called before compile",
                hint='call model.compile(...), for example model.compile(optimizer="adam", loss="mse")',
            )


@contextmanager
def _close_bar_on_error(listeners: CallbackList) -> Iterator[None]:
    """End the line of the progress bar if an error or interrupt leaves the context."""
    try:
        yield
    except BaseException:
        for callback in listeners.callbacks:
            if isinstance(callback, ProgbarLogger):
                callback.abandon()
        raise


def _single_batch(x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None) -> Batch:
    x, y, sample_weight = as_arrays(x, y, sample_weight)
    if class_weight is not None:
        sample_weight = class_weights(y, class_weight)
    return map_structure(as_tensor, (x, y, sample_weight))


def _is_due(epoch: int, frequency: int | Container[int]) -> bool:
    if isinstance(frequency, int):
        return (epoch + 1) % frequency == 0
    return epoch + 1 in frequency


def _as_numpy(tensor: Any) -> Any:
    return tensor.numpy(force=True) if isinstance(tensor, Tensor) else tensor  # float32 for bfloat16


def _concatenate(parts: list[Any]) -> Any:
    """Concatenate the outputs of batches."""
    first = parts[0]
    if isinstance(first, dict):
        return {name: _concatenate([part[name] for part in parts]) for name in first}
    if isinstance(first, list | tuple):
        return type(first)(_concatenate(list(column)) for column in zip(*parts, strict=True))
    return _as_numpy(tl.cat(parts))

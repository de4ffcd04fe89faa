"""fit, evaluate and predict: the part of a Keras model that trains it."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tallow as tl
from tallow import devices
from tallow.errors import ArgumentError, GraphError
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
from tallow.keras.callbacks.callback import as_numbers, spread
from tallow.keras.settings import max_epochs
from tallow.keras.steps import Logs, Steps
from tallow.keras.structure import map_structure
from tallow.tensor import Tensor


class Trainer(Steps):
    """Training for a module, which is mixed in before it: `class Model(Trainer, nn.Module)`.

    Attributes:
        stop_training: set by a callback, ends `fit` after the batch.
        resume_epoch: set by a callback when training begins, is the epoch to go on from.
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
        """Train for some epochs, each a walk through the data.

        Args:
            x: arrays, tensors or lists of numbers, in a list or dict for several inputs; or a `tallow.data.Dataset`, or
                an iterable of batches (x, y) or (x, y, sample_weight), a DataLoader for one.
            batch_size: samples of a batch, 32 if it is not given.
            verbose: 0 for silence, 1 for a progress bar, 2 for a line an epoch; "auto" is 1 in a terminal or notebook,
                else 2.
            validation_split: the part of the samples, the last ones, to measure with and not to learn from.
            validation_data: (x, y) or (x, y, sample_weight) to measure with, or an iterable of batches.
            shuffle: take the samples in a new order each epoch, from the generator that `tallow.manual_seed` seeds.
            class_weight: by class, what its samples weigh in the loss.
            validation_freq: measure after every so many epochs, or after those, counted from 1, that are in a list.

        Returns: the metrics of each epoch; `model.history` is the same object, and has the epochs so far when training
            is interrupted. An interrupt (Ctrl-C) is passed on, and the callbacks' `on_train_end` is not called then.

        Raises:  ArgumentError for data that does not fit together or to the model, GraphError before `compile`
        """
        self._check_compiled("fit")
        limit = max_epochs()
        if limit is not None and limit < epochs:
            warnings.warn(f"the setting max_epochs limits training to {limit} epochs", stacklevel=2)
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
        with _closing_the_bar(listeners):
            listeners.on_train_begin()
            begin = initial_epoch if self.resume_epoch is None else self.resume_epoch
            for epoch in range(begin, epochs):
                listeners.on_epoch_begin(epoch)
                logs = self._train_epoch(training, listeners)
                if validation is not None and _is_due(epoch, validation_freq):
                    measured = self._test_epoch(validation, listeners)
                    logs |= {f"val_{name}": value for name, value in measured.items()}
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
        """The loss and the metrics of this data: a list, loss first, or a number if there is no metric.

        Args:    as `fit`; return_dict: return them by name
        Raises:  as `fit`
        """
        self._check_compiled("evaluate")
        source = Epochs(batches(x, y, sample_weight, batch_size=batch_size, steps=steps), steps)
        self._prepare(source.source.first(), training=False)
        listeners = self._callbacks(callbacks, verbose, 1, source.steps)
        with _closing_the_bar(listeners):
            logs = self._test_epoch(source, listeners)
        return logs if return_dict else self._in_order(logs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The output for this data, as NumPy arrays in the structure that the model gives.

        Args:    as `fit`; targets that an iterable yields are ignored
        Raises:  as `fit`
        """
        source = Epochs(batches(x, batch_size=batch_size, steps=steps), steps)
        self._prepare(source.source.first(), training=False)
        listeners = self._callbacks(callbacks, verbose, 1, source.steps)
        parts: list[Any] = []
        self.stop_predicting = False
        with _closing_the_bar(listeners), self._measuring():
            listeners.on_predict_begin()
            for step, data in enumerate(source.epoch()):
                listeners.on_predict_batch_begin(step)
                parts.append(self.predict_step(self._for_step(data)))
                listeners.on_predict_batch_end(step, {"outputs": parts[-1]})
                if self.stop_predicting:
                    break
            listeners.on_predict_end()
        return _joined(parts)

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Learn from this batch alone; returns the metrics of it, as `evaluate`."""
        self._check_compiled("train_on_batch")
        data = _one_batch(x, y, sample_weight, class_weight)
        self._prepare(data)
        self.reset_metrics()
        self.train()
        try:
            logs = as_numbers(spread(self.train_step(self._for_step(data))))
        finally:
            self.eval()  # as after `fit`: a call of the model means to use it
        return logs if return_dict else self._in_order(logs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """The metrics of this batch, as `evaluate`."""
        self._check_compiled("test_on_batch")
        data = _one_batch(x, y, sample_weight)
        self._prepare(data, training=False)
        self.reset_metrics()
        with self._measuring():
            logs = as_numbers(spread(self.test_step(self._for_step(data))))
        return logs if return_dict else self._in_order(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """The output for this batch, as `predict`."""
        data = _one_batch(x)
        self._prepare(data, training=False)
        with self._measuring():
            return map_structure(_as_numpy, self.predict_step(self._for_step(data)))

    # ----------------------------------------------------------------------------------------------- parts of the loops

    def _train_epoch(self, training: Epochs, listeners: CallbackList) -> Logs:
        self.reset_metrics()
        self.train()
        logs: Logs = {}
        try:
            for step, data in enumerate(training.epoch()):
                listeners.on_train_batch_begin(step)
                logs = spread(self.train_step(self._for_step(data)))
                listeners.on_train_batch_end(step, logs)
                if self.stop_training:
                    break
        finally:
            self.eval()
        return as_numbers(logs)

    def _test_epoch(self, source: Epochs, listeners: CallbackList) -> Logs:
        self.stop_evaluating = False
        source.restart()  # so that every epoch is measured by the same samples
        listeners.on_test_begin()
        self.reset_metrics()
        logs: Logs = {}
        with self._measuring():
            for step, data in enumerate(source.epoch()):
                listeners.on_test_batch_begin(step)
                logs = spread(self.test_step(self._for_step(data)))
                listeners.on_test_batch_end(step, logs)
                if self.stop_evaluating:
                    break
        logs = as_numbers(logs)
        listeners.on_test_end(logs)
        return logs

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        """No gradients, and layers as they are when a model is used."""
        self.eval()
        with tl.no_grad():
            yield

    def _prepare(self, first: Batch, training: bool = True) -> None:
        """Make what can be made only when the first batch is seen: weights, and the optimizer's state."""
        self._model_device = self._find_device()
        build = getattr(self, "_ensure_built", None)
        if build is not None:
            build(self._moved(first[0]))
            self._model_device = self._find_device()
        if training:
            self._build_optimizer()

    def _for_step(self, data: Batch) -> Any:
        """The batch as steps take it: without the parts that are not there, on the device of the model's parameters."""
        return pack_x_y_sample_weight(*self._moved(data))

    def _moved(self, data: Any) -> Any:
        device = self._model_device

        def moved(tensor: Tensor | None) -> Tensor | None:
            return tensor if tensor is None or device is None or tensor.device == device else tensor.to(device)

        return map_structure(moved, data)

    def _find_device(self) -> devices.device | None:
        """Where the parameters are, or will be made; None leaves batches where they are."""
        return next((param.device for param in self.parameters()), devices.default.device)

    def _callbacks(
        self, callbacks: Any, verbose: int | str, epochs: int, steps: int | None, with_history: bool = False
    ) -> CallbackList:
        given = [] if callbacks is None else list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
        if with_history and not any(isinstance(callback, History) for callback in given):
            given.append(History())
        if verbose and not any(isinstance(callback, ProgbarLogger) for callback in given):
            given.append(ProgbarLogger())
        return CallbackList(given, self, verbose=verbose, epochs=epochs, steps=steps)

    def _in_order(self, logs: Logs) -> Any:
        """The values in the order of `metrics`, and those that go by another name in the logs behind them, by name, as
        Keras has them. One value is no list.
        """
        order = {name: None for metric in self.metrics for name in getattr(metric, "names", [metric.name])}
        values = [logs[name] for name in order if name in logs]
        values += [value for name, value in sorted(logs.items()) if name not in order]
        return values[0] if len(values) == 1 else values

    def _check_compiled(self, what: str) -> None:
        if not self.compiled:
            raise GraphError(
                f"{what} was called before compile",
                mend='say how to train: model.compile(optimizer="adam", loss="mse")',
            )


@contextmanager
def _closing_the_bar(listeners: CallbackList) -> Iterator[None]:
    """End the line of the progress bar, should the block be left by an error or an interrupt."""
    try:
        yield
    except BaseException:
        for callback in listeners.callbacks:
            if isinstance(callback, ProgbarLogger):
                callback.abandon()
        raise


def _one_batch(x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None) -> Batch:
    x, y, sample_weight = as_arrays(x, y, sample_weight)
    if class_weight is not None:
        sample_weight = class_weights(y, class_weight)
    return map_structure(as_tensor, (x, y, sample_weight))


def _is_due(epoch: int, frequency: int | Container[int]) -> bool:
    if isinstance(frequency, int):
        return (epoch + 1) % frequency == 0
    return epoch + 1 in frequency


def _as_numpy(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy() if isinstance(tensor, Tensor) else tensor


def _joined(parts: list[Any]) -> Any:
    """The outputs of batches one behind the other."""
    first = parts[0]
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    if isinstance(first, list | tuple):
        return type(first)(_joined(list(column)) for column in zip(*parts, strict=True))
    return _as_numpy(tl.cat(parts))

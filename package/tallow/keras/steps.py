"""The computation of a model for one batch, as set up by `compile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import losses, optimizers
from tallow.keras.batches import unpack_x_y_sample_weight as unpack
from tallow.keras.compiled import CompiledLoss, CompiledMetrics
from tallow.keras.metrics import Mean, Metric
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.structure import flatten, map_structure

if TYPE_CHECKING:
    from tallow.nn import Module as Mixed
else:
    Mixed = object  # the class is mixed in before a Module

Logs = dict[str, Any]


class Steps(Mixed):
    """Mixin for training and evaluation of one batch; `Trainer` loops over them. A model may override the steps."""

    optimizer: Any = None
    loss: Any = None
    compiled = False
    _compiled_loss: CompiledLoss | None = None
    _compiled_metrics: CompiledMetrics | None = None
    _loss_tracker: Mean | None = None
    _compile_arguments: dict[str, Any]

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | str = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Configure the training.

        Args:
            optimizer: a name, an optimizer of `keras.optimizers`, or one of `tallow.optim` (or its class).
            loss: a name, a `Loss`, or a function of (y_true, y_pred); for several outputs a list, or a dict by name.
            loss_weights: the factor of each output's loss in the sum.
            metrics, weighted_metrics: lists of names, `Metric`s or functions; the latter use sample weights. For
                several outputs a list of lists, or a dict by name. "accuracy" chooses the variant that fits the shapes.
            auto_scale_loss: wrap the optimizer in a LossScaleOptimizer if the model's dtype policy is mixed_float16.
            run_eagerly, steps_per_execution, jit_compile: accepted for Keras compatibility; they have no effect,
                because there is no graph to compile.

        Raises:  ArgumentError for an unknown name, ArgumentTypeError for anything but an optimizer, loss or metric
        """
        names = getattr(self, "output_names", None)
        self._compiled_loss = None if loss is None else CompiledLoss(loss, loss_weights, names)
        has_metrics = metrics is not None or weighted_metrics is not None
        self._compiled_metrics = CompiledMetrics(metrics, weighted_metrics, names) if has_metrics else None
        self.optimizer = optimizers.get(optimizer)
        is_scaled = self.optimizer is None or isinstance(self.optimizer, optimizers.LossScaleOptimizer)
        if auto_scale_loss and not is_scaled and _computes_in_float16(self):
            self.optimizer = optimizers.LossScaleOptimizer(self.optimizer)
        self.loss = loss
        self._loss_tracker = Mean("loss")
        self._compile_arguments = {
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
        }
        self.compiled = True

    def get_compile_config(self) -> dict[str, Any] | None:
        """Return the arguments of `compile` as plain values, except custom functions; None before `compile`."""
        if not self.compiled:
            return None
        arguments = {name: map_structure(_by_name, value) for name, value in self._compile_arguments.items()}
        return serialize_keras_object({"optimizer": self.optimizer} | arguments)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Call `compile` with the result of `get_compile_config`.

        Raises:  ArgumentError for an unknown class or function
        """
        self.compile(**deserialize_keras_object(config))
        self._build_optimizer()

    def _build_optimizer(self) -> None:
        trainable = [param for param in self.parameters() if param.requires_grad]
        if self.optimizer is not None and trainable:
            self.optimizer.build(trainable)

    # ----------------------------------------------------------------------------------- steps that models may override

    def train_step(self, data: Any) -> Logs:
        """Train on one batch, x, (x, y) or (x, y, sample_weight), and return the metrics so far.

        An override computes the loss and calls `backward` and `self.optimizer.step()`:

            def train_step(self, data):
                x, y = data
                self.zero_grad()
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
                self.optimizer.scale_loss(loss).backward()
                self.optimizer.step()
                return {"loss": loss}
        """
        x, y, sample_weight = unpack(data)
        self.zero_grad()
        y_pred = self(x, training=True)
        loss = self.compute_loss(x, y, y_pred, sample_weight, training=True)
        self._track(loss, x)
        self.optimizer.scale_loss(loss).backward()
        self.optimizer.step()
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data: Any) -> Logs:
        """Evaluate one batch, and return the metrics so far."""
        x, y, sample_weight = unpack(data)
        y_pred = self(x, training=False)
        loss = self.compute_loss(x, y, y_pred, sample_weight, training=False)
        if loss is not None:
            self._track(loss, x)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Return the output for one batch."""
        return self(unpack(data)[0], training=False)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """Return the losses of the outputs plus those that layers add: regularizers and `add_loss`.

        Returns: a tensor; None if there is no loss and `training` is False.
        Raises:  ArgumentError if there is no loss to train with
        """
        parts = [part.sum() for part in getattr(self, "losses", ())]
        if self._compiled_loss is not None:
            parts.insert(0, self._compiled_loss(y, y_pred, sample_weight))
        if not parts:
            if training:
                raise ArgumentError(
                    "there is no loss to train with", hint='call model.compile(loss=...), for example loss="mse"'
                )
            return None
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Logs:
        """Add a batch to the metrics, and return all of them."""
        if self._compiled_metrics is not None:
            with tl.no_grad():
                self._compiled_metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> Logs:
        """Return the metrics so far, by name."""
        results: Logs = {}
        for metric in self.metrics:
            value = metric.result()
            results.update(value if isinstance(value, dict) else {metric.name: value})
        return results

    def _track(self, loss: Tensor, x: Any) -> None:
        if self._loss_tracker is not None:
            rows = next(len(leaf) for leaf in flatten(x) if leaf is not None)
            self._loss_tracker.update_state(loss, sample_weight=rows)

    @property
    def metrics(self) -> list[Any]:
        """The mean loss, the metrics of `compile` combined into one, and metrics that are attributes of the model.

        All have `update_state`, `result` and `reset_state`; the combined one is called "compile_metrics", and its
        result is a dict.
        """
        metrics: list[Any] = [] if self._loss_tracker is None else [self._loss_tracker]
        if self._compiled_metrics is not None:
            metrics.append(self._compiled_metrics)
        if self._compiled_loss is not None:
            metrics += self._compiled_loss.metrics
        return metrics + [
            value for name, value in vars(self).items() if isinstance(value, Metric) and name != "_loss_tracker"
        ]

    @property
    def metrics_names(self) -> list[str]:
        """The names of `metrics`."""
        return [metric.name for metric in self.metrics]

    def reset_metrics(self) -> None:
        """Reset all metrics."""
        for metric in self.metrics:
            metric.reset_state()


def _computes_in_float16(model: Any) -> bool:
    policy = getattr(model, "dtype_policy", None)
    return policy is not None and policy.name == "mixed_float16"


def _by_name(identifier: Any) -> Any:
    """Return the name of a function that Keras has; return anything else unchanged."""
    name = getattr(identifier, "__name__", "")
    return name if name and losses.FUNCTIONS.get(name) is identifier else identifier

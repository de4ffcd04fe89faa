"""The losses and metrics of `compile`, matched with the model's outputs at the first batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras import losses, metrics
from tallow.keras.layers.masks import masks_of, set_masks
from tallow.keras.losses import Loss, LossFunctionWrapper
from tallow.keras.metrics import Mean, MeanMetricWrapper, Metric
from tallow.keras.structure import flatten, map_structure


class Output(NamedTuple):
    """One output of the model with its target and sample weight."""

    name: str
    y_true: Any
    y_pred: Tensor
    sample_weight: Any


def outputs(y: Any, y_pred: Any, sample_weight: Any, names: Sequence[str] | None) -> list[Output]:
    """Return the model's outputs in order: that of `names`, of a list, or of the sorted keys of a dict.

    Raises:  ArgumentError unless there is one target per output
    """
    if not isinstance(y_pred, list | tuple | dict):
        parts = [part[0] if isinstance(part, list | tuple) and len(part) == 1 else part for part in (y, sample_weight)]
        if isinstance(y, dict) and len(y) == 1:
            parts[0] = next(iter(y.values()))
        return [Output(names[0] if names else "output", parts[0], y_pred, parts[1])]
    if isinstance(y_pred, dict):
        order = list(names) if names and set(names) == set(y_pred) else sorted(y_pred)
        predictions = [y_pred[name] for name in order]
    else:
        predictions = list(flatten(y_pred))
        order = (
            list(names)
            if names and len(names) == len(predictions)
            else [f"output_{i}" for i in range(len(predictions))]
        )
    targets = _per_output(y, order, "y")
    if sample_weight is not None and not isinstance(sample_weight, list | tuple | dict):
        sample_weight = [sample_weight] * len(order)
    weights = _per_output(sample_weight, order, "sample_weight")
    return [Output(*row) for row in zip(order, targets, predictions, weights, strict=True)]


def _per_output(entries: Any, order: Sequence[str], what: str) -> list[Any]:
    """Return the entry of each output in a list or dict; None if a dict has no entry."""
    if entries is None:
        return [None] * len(order)
    if isinstance(entries, dict):
        if unknown := [name for name in entries if name not in order]:
            raise ArgumentError(
                f"{what} contains {unknown[0]!r}, which is not an output of the model", hint=f"use {list(order)}"
            )
        return [entries.get(name) for name in order]
    if isinstance(entries, list | tuple) and len(entries) == len(order):
        return list(entries)
    count = len(entries) if isinstance(entries, list | tuple) else 1
    raise ArgumentError(
        f"{what} has {count} parts, but the model has {len(order)} outputs: {list(order)}",
        hint="pass a list with one entry per output, or a dict keyed by output names",
    )


class CompiledLoss:
    """The weighted sum of the losses of all outputs.

    Attributes:
        metrics: the means of the individual losses, if there are several.
    """

    def __init__(self, loss: Any, loss_weights: Any, output_names: Sequence[str] | None) -> None:
        self._specs = map_structure(_resolve_loss, loss)  # raise an error for an unknown name in compile()
        for weight in flatten(loss_weights):
            if weight is not None and not isinstance(weight, int | float | np.number):
                raise ArgumentTypeError(
                    f"loss_weights contains {weight!r}, which is not a number",
                    hint="pass metrics by name: compile(optimizer, loss, metrics=[...])",
                )
        self._weights = loss_weights
        self._names = output_names
        self._losses: list[Loss | None] | None = None
        self._factors: list[float | None] = []
        self.metrics: list[Metric] = []

    def __call__(self, y: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        model_outputs = outputs(y, y_pred, sample_weight, self._names)
        if self._losses is None:
            self._losses = self._match(model_outputs)
        total: Tensor | None = None
        means = iter(self.metrics)
        for output, loss, factor in zip(model_outputs, self._losses, self._factors, strict=True):
            if loss is None:
                continue
            if output.y_true is None:
                raise ArgumentError(
                    f"targets are missing for output {output.name!r}, which has a loss" if len(model_outputs) > 1 else
                    "the model was compiled with a loss, but the data has no targets",
                    hint="pass y, or batches of (x, y)",
                )  # fmt: skip
            value = loss(output.y_true, output.y_pred, output.sample_weight)
            if self.metrics:
                next(means).update_state(value, sample_weight=len(output.y_pred))
            value = value if factor is None else value * factor
            total = value if total is None else total + value
        if total is None:
            raise ArgumentError("no output has a loss", hint="pass one to compile(loss=...)")
        return total

    def _match(self, model_outputs: list[Output]) -> list[Loss | None]:
        order = [output.name for output in model_outputs]
        specs = self._specs if isinstance(self._specs, list | tuple | dict) else [self._specs] * len(order)
        pairs = zip(_per_output(specs, order, "loss"), model_outputs, strict=True)
        matched = [_resolve_loss(_variant(loss, output)) if isinstance(loss, str) else loss for loss, output in pairs]
        weights = self._weights
        self._factors = _per_output([weights] if isinstance(weights, int | float) else weights, order, "loss_weights")
        if sum(loss is not None for loss in matched) > 1:
            self.metrics = [Mean(f"{name}_loss") for name, loss in zip(order, matched, strict=True) if loss is not None]
        return matched


def _resolve_loss(identifier: Any) -> Any:
    """Return the loss; an ambiguous name is resolved later from the shapes."""
    if _is_short(identifier, "crossentropy", "ce"):
        return identifier
    loss = losses.get(identifier)
    return loss if loss is None or isinstance(loss, Loss) else LossFunctionWrapper(loss)


class CompiledMetrics:
    """The metrics of all outputs as one, whose result is a dict; with several outputs, it prefixes output names."""

    name = "compile_metrics"

    def __init__(self, unweighted: Any, weighted: Any, output_names: Sequence[str] | None) -> None:
        for what, part in (("metrics", unweighted), ("weighted_metrics", weighted)):
            if part is not None and not isinstance(part, list | tuple | dict):
                raise ArgumentTypeError(f"{what} must be a list or a dict, not {part!r}", hint=f"{what}=[{part!r}]")
        self._specs = tuple(map_structure(_resolve_metric, part) for part in (unweighted, weighted))
        self._names = output_names
        self._matches: list[tuple[str, Metric, int, bool]] | None = None  # name, metric, output, takes weights

    @property
    def metrics(self) -> list[Metric]:
        """The metrics, once they are matched with the outputs."""
        return [metric for _, metric, _, _ in self._matches or ()]

    @property
    def names(self) -> list[str]:
        """The metrics' own names; with several outputs, the names in the result differ."""
        return [metric.name for metric in self.metrics]

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch to all metrics."""
        model_outputs = outputs(y, y_pred, sample_weight, self._names)
        if self._matches is None:
            self._matches = list(self._match(model_outputs))
        for _, metric, index, takes_weights in self._matches:
            output = model_outputs[index]
            y_pred = output.y_pred.detach()
            set_masks(y_pred, masks_of(output.y_pred))
            metric.update_state(output.y_true, y_pred, sample_weight=output.sample_weight if takes_weights else None)

    def reset_state(self) -> None:
        """Reset all metrics."""
        for metric in self.metrics:
            metric.reset_state()

    def result(self) -> dict[str, Any]:
        """Return the results of all metrics by name."""
        results: dict[str, Any] = {}
        for name, metric, _, _ in self._matches or ():
            value = metric.result()
            results.update(value if isinstance(value, dict) else {name: value})
        return results

    def _match(self, model_outputs: list[Output]) -> Iterator[tuple[str, Metric, int, bool]]:
        order = [output.name for output in model_outputs]
        used_names: set[str] = set()
        for specs, takes_weights in zip(self._specs, (False, True), strict=True):
            if not specs:
                continue
            lists = [list(flatten(specs))] if len(order) == 1 else _per_output(specs, order, "metrics")
            for index, (output, identifiers) in enumerate(zip(model_outputs, lists, strict=True)):
                for identifier in flatten(identifiers):
                    if identifier is None:
                        continue
                    metric = (
                        _get_named(_variant(identifier, output), identifier)
                        if isinstance(identifier, str)
                        else identifier
                    )
                    name = metric.name if len(order) == 1 else f"{output.name}_{metric.name}"
                    if name in used_names and takes_weights:
                        name = f"weighted_{name}"
                    yield _unique_name(name, used_names), metric, index, takes_weights


def _unique_name(name: str, used: set[str]) -> str:
    """Return the name, with a number appended if it is used, and add it to the used names."""
    candidate, count = name, 0
    while candidate in used:
        count += 1
        candidate = f"{name}_{count}"
    used.add(candidate)
    return candidate


# Names that stand for one of three variants: for one unit; for class indices; for one target per unit.
ACCURACY = ("binary_accuracy", "sparse_categorical_accuracy", "categorical_accuracy")
CROSSENTROPY = ("binary_crossentropy", "sparse_categorical_crossentropy", "categorical_crossentropy")
SHORT = {"accuracy": ACCURACY, "acc": ACCURACY, "crossentropy": CROSSENTROPY, "ce": CROSSENTROPY}


def _resolve_metric(identifier: Any) -> Metric | str | None:
    """Return the metric under the requested name; an ambiguous name is resolved later from the shapes."""
    if identifier is None or _is_short(identifier, *SHORT):
        return identifier
    if isinstance(identifier, str):
        return _get_named(identifier, identifier)
    metric = metrics.get(identifier)
    return metric if isinstance(metric, Metric) else MeanMetricWrapper(metric, getattr(metric, "__name__", "metric"))


def _get_named(identifier: str, name: str) -> Metric:
    metric: Metric = metrics.get(identifier)
    metric.name = name
    return metric


def _is_short(identifier: Any, *names: str) -> bool:
    return isinstance(identifier, str) and identifier.lower() in names


def _variant(short: str, output: Output) -> str:
    """Return the variant that fits the shapes."""
    binary, sparse, categorical = SHORT[short.lower()]
    y_true, y_pred = output.y_true, output.y_pred
    if y_true is None:
        raise ArgumentError("targets are missing for the metrics", hint="pass y, or batches of (x, y)")
    if y_pred.shape[-1] == 1:
        return binary
    return sparse if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1 else categorical

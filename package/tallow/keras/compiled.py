"""What `compile` was given, matched with the outputs of the model when the first batch shows what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras import losses, metrics
from tallow.keras.layers.masks import masks_of, set_masks
from tallow.keras.losses import Loss, LossFunctionWrapper
from tallow.keras.metrics import Mean, MeanMetricWrapper, Metric
from tallow.keras.structure import flatten, map_structure
from tallow.tensor import Tensor


class Output(NamedTuple):
    """One output of the model, with what it should have been."""

    name: str
    y_true: Any
    y_pred: Tensor
    sample_weight: Any


def outputs(y: Any, y_pred: Any, sample_weight: Any, names: Sequence[str] | None) -> list[Output]:
    """The outputs of the model in their order: that of `names`, or of a list, or of the sorted keys of a dict.

    Raises:  ArgumentError where there is not a target for each
    """
    if not isinstance(y_pred, list | tuple | dict):
        only = [part[0] if isinstance(part, list | tuple) and len(part) == 1 else part for part in (y, sample_weight)]
        if isinstance(y, dict) and len(y) == 1:
            only[0] = next(iter(y.values()))
        return [Output(names[0] if names else "output", only[0], y_pred, only[1])]
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
    targets = _one_each(y, order, "y")
    if sample_weight is not None and not isinstance(sample_weight, list | tuple | dict):
        sample_weight = [sample_weight] * len(order)
    weights = _one_each(sample_weight, order, "sample_weight")
    return [Output(*row) for row in zip(order, targets, predictions, weights, strict=True)]


def _one_each(given: Any, order: Sequence[str], what: str) -> list[Any]:
    """What belongs to each output of a list or dict; None where a dict has no entry."""
    if given is None:
        return [None] * len(order)
    if isinstance(given, dict):
        if unknown := [name for name in given if name not in order]:
            raise ArgumentError(
                f"{what} names {unknown[0]!r}, which is no output of the model", mend=f"use {list(order)}"
            )
        return [given.get(name) for name in order]
    if isinstance(given, list | tuple) and len(given) == len(order):
        return list(given)
    count = len(given) if isinstance(given, list | tuple) else 1
    raise ArgumentError(
        f"{what} has {count} parts, and the model {len(order)} outputs: {list(order)}",
        mend="give a list with one for each output, or a dict by their names",
    )


class CompiledLoss:
    """The weighted sum of the losses of all outputs.

    Attributes:
        metrics: the means of the single losses, where there are several.
    """

    def __init__(self, loss: Any, loss_weights: Any, output_names: Sequence[str] | None) -> None:
        self._given = map_structure(_resolved_loss, loss)  # a wrong name is an error in compile() already
        self._weights = loss_weights
        self._names = output_names
        self._losses: list[Loss | None] | None = None
        self._factors: list[float | None] = []
        self.metrics: list[Metric] = []

    def __call__(self, y: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        every = outputs(y, y_pred, sample_weight, self._names)
        if self._losses is None:
            self._losses = self._match(every)
        total: Tensor | None = None
        means = iter(self.metrics)
        for output, loss, factor in zip(every, self._losses, self._factors, strict=True):
            if loss is None:
                continue
            if output.y_true is None:
                raise ArgumentError(
                    f"there are no targets for output {output.name!r}, which has a loss" if len(every) > 1 else
                    "the model was compiled with a loss, but the data has no targets",
                    mend="pass y, or batches of (x, y)",
                )  # fmt: skip
            value = loss(output.y_true, output.y_pred, output.sample_weight)
            if self.metrics:
                next(means).update_state(value, sample_weight=len(output.y_pred))
            value = value if factor is None else value * factor
            total = value if total is None else total + value
        if total is None:
            raise ArgumentError("no output has a loss", mend="name one in compile(loss=...)")
        return total

    def _match(self, every: list[Output]) -> list[Loss | None]:
        order = [output.name for output in every]
        given = self._given if isinstance(self._given, list | tuple | dict) else [self._given] * len(order)
        each = zip(_one_each(given, order, "loss"), every, strict=True)
        matched = [_resolved_loss(_variant(loss, output)) if isinstance(loss, str) else loss for loss, output in each]
        weights = self._weights
        self._factors = _one_each([weights] if isinstance(weights, int | float) else weights, order, "loss_weights")
        if sum(loss is not None for loss in matched) > 1:
            self.metrics = [Mean(f"{name}_loss") for name, loss in zip(order, matched, strict=True) if loss is not None]
        return matched


def _resolved_loss(identifier: Any) -> Any:
    """The loss; a name that stands for several waits for the shapes."""
    if _is_short(identifier, "crossentropy", "ce"):
        return identifier
    found = losses.get(identifier)
    return found if found is None or isinstance(found, Loss) else LossFunctionWrapper(found)


class CompiledMetrics:
    """The metrics of all outputs, as one whose result is a dict; those of one among several have its name in front."""

    name = "compile_metrics"

    def __init__(self, given: Any, weighted: Any, output_names: Sequence[str] | None) -> None:
        for what, part in (("metrics", given), ("weighted_metrics", weighted)):
            if part is not None and not isinstance(part, list | tuple | dict):
                raise ArgumentTypeError(f"{what} must be a list or a dict, not {part!r}", mend=f"{what}=[{part!r}]")
        self._given = tuple(map_structure(_resolved_metric, part) for part in (given, weighted))
        self._names = output_names
        self._matched: list[tuple[str, Metric, int, bool]] | None = None  # name, metric, output, takes weights

    @property
    def metrics(self) -> list[Metric]:
        return [metric for _, metric, _, _ in self._matched or ()]

    @property
    def names(self) -> list[str]:
        """What the metrics call themselves; those of one output among several have another name in the result."""
        return [metric.name for metric in self.metrics]

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        every = outputs(y, y_pred, sample_weight, self._names)
        if self._matched is None:
            self._matched = list(self._match(every))
        for _, metric, place, takes_weights in self._matched:
            output = every[place]
            y_pred = output.y_pred.detach()
            set_masks(y_pred, masks_of(output.y_pred))
            metric.update_state(output.y_true, y_pred, sample_weight=output.sample_weight if takes_weights else None)

    def reset_state(self) -> None:
        for metric in self.metrics:
            metric.reset_state()

    def result(self) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for name, metric, _, _ in self._matched or ():
            value = metric.result()
            results.update(value if isinstance(value, dict) else {name: value})
        return results

    def _match(self, every: list[Output]) -> Iterator[tuple[str, Metric, int, bool]]:
        order = [output.name for output in every]
        taken: set[str] = set()
        for given, takes_weights in zip(self._given, (False, True), strict=True):
            if not given:
                continue
            lists = [list(flatten(given))] if len(order) == 1 else _one_each(given, order, "metrics")
            for place, (output, identifiers) in enumerate(zip(every, lists, strict=True)):
                for identifier in flatten(identifiers):
                    if identifier is None:
                        continue
                    metric = (
                        _named(_variant(identifier, output), identifier) if isinstance(identifier, str) else identifier
                    )
                    name = metric.name if len(order) == 1 else f"{output.name}_{metric.name}"
                    if name in taken and takes_weights:
                        name = f"weighted_{name}"
                    yield _free(name, taken), metric, place, takes_weights


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if it is taken; from now on it is."""
    free, count = name, 0
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    taken.add(free)
    return free


# Names that stand for one of three metrics: of one unit; of an index among several; of a target for each unit.
ACCURACY = ("binary_accuracy", "sparse_categorical_accuracy", "categorical_accuracy")
CROSSENTROPY = ("binary_crossentropy", "sparse_categorical_crossentropy", "categorical_crossentropy")
SHORT = {"accuracy": ACCURACY, "acc": ACCURACY, "crossentropy": CROSSENTROPY, "ce": CROSSENTROPY}


def _resolved_metric(identifier: Any) -> Metric | str | None:
    """The metric, named as it was asked for; a name that stands for several waits for the shapes."""
    if identifier is None or _is_short(identifier, *SHORT):
        return identifier
    if isinstance(identifier, str):
        return _named(identifier, identifier)
    found = metrics.get(identifier)
    return found if isinstance(found, Metric) else MeanMetricWrapper(found, getattr(found, "__name__", "metric"))


def _named(identifier: str, name: str) -> Metric:
    metric: Metric = metrics.get(identifier)
    metric.name = name
    return metric


def _is_short(identifier: Any, *names: str) -> bool:
    return isinstance(identifier, str) and identifier.lower() in names


def _variant(short: str, output: Output) -> str:
    """Which of the three the shapes ask for."""
    binary, sparse, categorical = SHORT[short.lower()]
    y_true, y_pred = output.y_true, output.y_pred
    if y_true is None:
        raise ArgumentError("there are no targets to compare the output with", mend="pass y, or batches of (x, y)")
    if y_pred.shape[-1] == 1:
        return binary
    return sparse if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1 else categorical

"""Losses between a target distribution and a predicted one.

Unless `from_logits` is set, `y_pred` are probabilities, clipped to `keras.config.epsilon()` from 0 and 1.
"""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, DimensionError, ShapeError
from tallow.keras.layers.masks import set_masks
from tallow.keras.losses.loss import LossFunctionWrapper, as_floats, pair, shapes_differ
from tallow.keras.settings import epsilon
from tallow.nn import functional as F

NO_LABEL = -(2**62)  # the ignored label if ignore_class is not set


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """Return mean(-y_true · log(y_pred) - (1 - y_true) · log(1 - y_pred)) along `axis`.

    Args:
        label_smoothing: targets move by this fraction of the distance towards 1/2.
    """
    y_true, y_pred = pair("binary_crossentropy", y_true, y_pred)
    return _binary(_towards_half(y_true, label_smoothing), y_pred, from_logits).mean(axis)


def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return binary cross-entropy times (1 - p)^gamma along `axis`, with p the probability of the target.

    Args:
        apply_class_balancing: weight class 1 with alpha, and class 0 with 1 - alpha.

    Source:  Lin et al. 2017, arXiv:1708.02002, eq. 5
    """
    y_true, y_pred = pair("binary_focal_crossentropy", y_true, y_pred)
    y_true = _towards_half(y_true, label_smoothing)
    p = y_pred.sigmoid() if from_logits else y_pred
    p_of_truth = y_true * p + (1 - y_true) * (1 - p)
    losses = (1 - p_of_truth) ** gamma * _binary(y_true, p, from_logits=False)
    if apply_class_balancing:
        losses = (y_true * alpha + (1 - y_true) * (1 - alpha)) * losses
    return losses.mean(axis)


def _towards_half(y_true: Tensor, label_smoothing: float) -> Tensor:
    return y_true * (1 - label_smoothing) + 0.5 * label_smoothing if label_smoothing else y_true


def _binary(y_true: Tensor, y_pred: Tensor, from_logits: bool) -> Tensor:
    if from_logits:
        return F.binary_cross_entropy_with_logits(y_pred, y_true, reduction="none")
    return F.binary_cross_entropy(y_pred.clamp(epsilon(), 1 - epsilon()), y_true, reduction="none")


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """Return -Σ y_true · log(y_pred) along `axis`, with targets that are one-hot or another distribution.

    Args:
        label_smoothing: this fraction of the target is distributed evenly over the classes.
    """
    y_true, y_pred = _distributions("categorical_crossentropy", y_true, y_pred, label_smoothing)
    return -(y_true * _log_probabilities(y_pred, from_logits, axis)).sum(axis)


def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: Any = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return -Σ alpha · (1 - y_pred)^gamma · y_true · log(y_pred) along `axis`.

    Args:
        alpha: the weight of a class; a number, or one per class.

    Source:  Lin et al. 2017, arXiv:1708.02002
    """
    y_true, y_pred = _distributions("categorical_focal_crossentropy", y_true, y_pred, label_smoothing)
    log_probabilities = _log_probabilities(y_pred.softmax(axis) if from_logits else y_pred, False, axis)
    weight = (1 - log_probabilities.exp()) ** gamma * tl.as_tensor(alpha, dtype=y_pred.dtype, device=y_pred.device)
    return -(weight * y_true * log_probabilities).sum(axis)


def _distributions(name: str, y_true: Any, y_pred: Any, label_smoothing: float) -> tuple[Tensor, Tensor]:
    y_true, y_pred = as_floats(y_true, y_pred)
    if y_true.shape != y_pred.shape:
        raise shapes_differ(name, y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1 - label_smoothing) + label_smoothing / y_true.shape[-1]
    return y_true, y_pred


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> Tensor:
    """Return -log(y_pred) of the class index in `y_true`.

    Args:
        ignore_class: positions with this class have loss 0 and do not count in the mean.

    Shapes:  y_pred (B, ..., C) with the classes along `axis`, y_true (B, ...) or (B, ..., 1)
    Raises:  ArgumentError for a label out of range, ShapeError for targets that are not labels
    """
    y_true, y_pred = as_floats(y_true, y_pred)
    classes = y_pred.shape[axis]
    if y_true.ndim == y_pred.ndim and y_true.shape[axis] == 1:
        y_true = y_true.squeeze(axis)
    expected = [n for i, n in enumerate(y_pred.shape) if i != axis % y_pred.ndim]
    if list(y_true.shape) != expected:
        one_hot = y_true.shape == y_pred.shape
        raise ShapeError(
            f"sparse_categorical_crossentropy: y_true has shape {tuple(y_true.shape)}, the model's output "
            f"{tuple(y_pred.shape)}; expected labels of shape {tuple(expected)}",
            hint="for one-hot targets use categorical_crossentropy"
            if one_hot
            else "pass one integer label for each position",
        )
    if axis % y_pred.ndim > 1:
        y_pred, axis = y_pred.movedim(axis, 1), 1
    ignore_index = NO_LABEL if ignore_class is None else ignore_class
    try:
        if from_logits:
            losses = F.cross_entropy(y_pred, y_true.long(), ignore_index=ignore_index, reduction="none")
        else:
            probabilities = _log_probabilities(y_pred, False, axis)
            losses = F.nll_loss(probabilities, y_true.long(), ignore_index=ignore_index, reduction="none")
    except DimensionError as error:
        raise _out_of_range(y_true, classes, ignore_class) from error
    if ignore_class is not None:
        set_masks(losses, y_true != ignore_class)
    return losses


def _out_of_range(labels: Tensor, classes: int, ignore_class: int | None) -> ArgumentError:
    invalid = ((labels < 0) | (labels >= classes)) & (labels != (NO_LABEL if ignore_class is None else ignore_class))
    return ArgumentError(
        f"sparse_categorical_crossentropy: label {int(labels[invalid][0].item())} is out of range: the model has "
        f"{classes} outputs, for labels from 0 to {classes - 1}",
        hint="use one unit per class in the last layer, and class indices from 0",
    )


def _log_probabilities(y_pred: Tensor, from_logits: bool, axis: int) -> Tensor:
    if from_logits:
        return F.log_softmax(y_pred, dim=axis)
    return (y_pred / y_pred.sum(axis, keepdim=True)).clamp(epsilon(), 1 - epsilon()).log()


def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """Return Σ y_true · log(y_true / y_pred) over the last axis."""
    y_true, y_pred = pair("kl_divergence", y_true, y_pred)
    y_true, y_pred = y_true.clamp(epsilon(), 1), y_pred.clamp(epsilon(), 1)
    return (y_true * (y_true / y_pred).log()).sum(-1)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(y_pred - y_true · log(y_pred)) over the last axis."""
    y_true, y_pred = pair("poisson", y_true, y_pred)
    return (y_pred - y_true * (y_pred + epsilon()).log()).mean(-1)


class BinaryCrossentropy(LossFunctionWrapper):
    """Loss class of `binary_crossentropy`."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "binary_crossentropy",
        dtype: Any = None,
    ) -> None:
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(binary_crossentropy, reduction, name, dtype, **options)


class BinaryFocalCrossentropy(LossFunctionWrapper):
    """Loss class of `binary_focal_crossentropy`."""

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "binary_focal_crossentropy",
        dtype: Any = None,
    ) -> None:
        options = {
            "apply_class_balancing": apply_class_balancing, "alpha": alpha, "gamma": gamma, "from_logits": from_logits,
            "label_smoothing": label_smoothing, "axis": axis,
        }  # fmt: skip
        super().__init__(binary_focal_crossentropy, reduction, name, dtype, **options)


class CategoricalCrossentropy(LossFunctionWrapper):
    """Loss class of `categorical_crossentropy`."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(categorical_crossentropy, reduction, name, dtype, **options)


class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """Loss class of `categorical_focal_crossentropy`."""

    def __init__(
        self,
        alpha: Any = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "categorical_focal_crossentropy",
        dtype: Any = None,
    ) -> None:
        options = {
            "alpha": alpha, "gamma": gamma, "from_logits": from_logits, "label_smoothing": label_smoothing,
            "axis": axis,
        }  # fmt: skip
        super().__init__(categorical_focal_crossentropy, reduction, name, dtype, **options)


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """Loss class of `sparse_categorical_crossentropy`."""

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str = "sparse_categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        options = {"from_logits": from_logits, "ignore_class": ignore_class, "axis": axis}
        super().__init__(sparse_categorical_crossentropy, reduction, name, dtype, **options)


class KLDivergence(LossFunctionWrapper):
    """Loss class of `kl_divergence`."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "kl_divergence", dtype: Any = None
    ) -> None:
        super().__init__(kl_divergence, reduction, name, dtype)


class Poisson(LossFunctionWrapper):
    """Loss class of `poisson`."""

    def __init__(self, reduction: str | None = "sum_over_batch_size", name: str = "poisson", dtype: Any = None) -> None:
        super().__init__(poisson, reduction, name, dtype)


def categorical_generalized_cross_entropy(y_true: Any, y_pred: Any, q: float) -> Tensor:
    """Return (1 - p^q) / q with p the probability of the label; between mean absolute error and cross-entropy.

    Shapes:  y_true (B), y_pred (B, C) -> (B)
    Source:  Zhang and Sabuncu 2018, arXiv:1805.07836, eq. 6
    """
    y_true, y_pred = as_floats(y_true, y_pred)
    p = y_pred.gather(-1, y_true.long().unsqueeze(-1)).squeeze(-1)
    return (1 - p**q) / q


class CategoricalGeneralizedCrossEntropy(LossFunctionWrapper):
    """Loss class of `categorical_generalized_cross_entropy`.

    Raises:  ArgumentError unless q is between 0 and 1
    """

    def __init__(
        self,
        q: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str = "categorical_generalized_cross_entropy",
        dtype: Any = None,
    ) -> None:
        if not 0 < q < 1:
            raise ArgumentError(f"CategoricalGeneralizedCrossEntropy: q must be between 0 and 1, got {q}")
        super().__init__(categorical_generalized_cross_entropy, reduction, name, dtype, q=q)

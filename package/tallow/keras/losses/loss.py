"""Base class of the losses: one value per sample, weighted, and reduced to one value per batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.keras.dtype_names import as_dtype
from tallow.keras.layers.masks import masks_of, set_masks
from tallow.keras.naming import automatic_name, snake_case

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none", None)


class Loss:
    """A function to minimize: `loss(y_true, y_pred, sample_weight=None)`.

    A subclass defines `call(y_true, y_pred)`, which returns a loss for each sample. Positions where the mask of
    `y_pred` is False, such as the padding after an Embedding with mask_zero, are ignored.

    Args:
        reduction: "sum_over_batch_size" or "mean" divide the sum of all losses by their number,
            "mean_with_sample_weight" by the sum of the weights; "sum"; "none" or None return one loss per sample.
        dtype: y_true, y_pred and the result are rounded to this dtype; the computation uses float32 or float64.

    Shapes:  y_true, y_pred (B, ...);  sample_weight (B) or the shape that `call` returns
    Dtypes:  without `dtype`: float64 if y_pred or the default dtype is float64, else float32
    Raises:  ArgumentError for an unknown reduction; ArgumentTypeError for a dtype that is not floating-point
    """

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: Any = None
    ) -> None:
        if reduction not in REDUCTIONS:
            raise ArgumentError(
                f"{reduction!r} is not a valid reduction", hint=f"use one of: {', '.join(map(str, REDUCTIONS))}"
            )
        self.name = name or automatic_name(snake_case(type(self).__name__))
        self.reduction = reduction
        self.dtype = None if dtype is None else as_dtype(dtype)
        if self.dtype is not None and not self.dtype.is_floating_point:
            raise ArgumentTypeError(f"{self.name}: a loss of dtype {self.dtype}", hint="use a floating-point dtype")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        if self.dtype is None:
            return self._compute(y_true, y_pred, sample_weight)
        mask = masks_of(y_pred)
        y_pred = tl.as_tensor(y_pred).to(self.dtype)
        set_masks(y_pred, mask)
        y_true = tl.as_tensor(y_true, device=y_pred.device).to(self.dtype)
        return self._compute(y_true, y_pred, sample_weight).to(self.dtype)

    def _compute(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Tensor:
        mask = masks_of(y_pred)
        values = self.call(*as_floats(y_true, y_pred))
        for part in (mask, masks_of(values)):
            if part is not None:
                sample_weight = masked(sample_weight, part, values, self.reduction)
        return reduce_weighted(values, sample_weight, self.reduction)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the loss of each sample; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define call(y_true, y_pred)")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """Create a loss from its configuration."""
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A loss defined by a function of (y_true, y_pred) and fixed keyword arguments for it."""

    def __init__(
        self,
        fn: Callable[..., Any],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn = fn
        self.fn_kwargs = kwargs

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return self.fn(*same_rank(y_true, y_pred), **self.fn_kwargs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self.fn_kwargs


# --------------------------------------------------------------------------------------------------------- helpers


def as_floats(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Convert both to float64 if `y_pred` or the default dtype is float64, else to float32, on the device of `y_pred`.

    16-bit floats can represent neither 1 - epsilon nor the labels of many classes.
    """
    y_pred = tl.as_tensor(y_pred)
    dtype = tl.float64 if tl.float64 in (y_pred.dtype, tl.get_default_dtype()) else tl.float32
    if y_pred.dtype is not dtype:
        y_pred = y_pred.to(dtype)
    if not isinstance(y_true, Tensor) or y_true.dtype is not dtype or y_true.device != y_pred.device:
        y_true = tl.as_tensor(y_true, dtype=dtype, device=y_pred.device)
    return y_true, y_pred


def same_rank(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return both with the same number of axes, if they differ only in a last axis of size 1."""
    if a.ndim == b.ndim + 1 and a.shape[-1] == 1:
        return (a, b.unsqueeze(-1)) if b.ndim == 1 else (a.squeeze(-1), b)
    if b.ndim == a.ndim + 1 and b.shape[-1] == 1:
        return (a.unsqueeze(-1), b) if a.ndim == 1 else (a, b.squeeze(-1))
    return a, b


def pair(name: str, y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Prepare y_true and y_pred for an elementwise loss.

    Raises:  ShapeError if their shapes differ
    """
    y_true, y_pred = same_rank(*as_floats(y_true, y_pred))
    if y_true.shape != y_pred.shape:
        raise shapes_differ(name, y_true, y_pred)
    return y_true, y_pred


def shapes_differ(name: str, y_true: Tensor, y_pred: Tensor) -> ShapeError:
    """Return the ShapeError for targets and predictions of different shapes."""
    classes_by_index = y_pred.ndim > 1 and y_true.shape in (y_pred.shape[:-1], (*y_pred.shape[:-1], 1))
    if classes_by_index:
        hint = "for integer labels use sparse_categorical_crossentropy, or convert them with to_categorical"
    else:
        hint = "the last layer needs one unit for each column of the targets"
    return ShapeError(f"{name}: y_true has shape {tuple(y_true.shape)}, the model's output {tuple(y_pred.shape)}", hint)


def masked(sample_weight: Any, mask: Tensor, values: Tensor, reduction: str | None) -> Tensor:
    """Return sample weights that are 0 at masked positions.

    If the reduction divides by the number of all positions, the weights of unmasked positions are scaled up to match.
    """
    weights = mask.to(values.dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        weights = weights * (weights.numel() / weights.sum().clamp(min=1))
    if sample_weight is None:
        return weights
    weight = tl.as_tensor(sample_weight, dtype=values.dtype, device=values.device)
    weights, weight = same_rank(weights, weight)
    return weights * _spread(weight, weights)


def reduce_weighted(values: Tensor, sample_weight: Any, reduction: str | None) -> Tensor:
    """Weight the losses of the samples and reduce them."""
    if sample_weight is not None:
        sample_weight = tl.as_tensor(sample_weight, dtype=values.dtype, device=values.device)
        values, sample_weight = same_rank(values, sample_weight)
        values = values * _spread(sample_weight, values)
    if reduction in ("none", None) or values.ndim == 0:
        return values
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        weight = sample_weight.sum()
        return tl.where(weight == 0, 0.0, values.sum() / tl.where(weight == 0, 1.0, weight))
    return values.sum() if reduction == "sum" or not values.numel() else values.mean()


def _spread(weight: Tensor, values: Tensor) -> Tensor:
    """Append axes of size 1 to the weight until it has as many as `values`.

    Raises:  ShapeError if it does not match the leading axes of `values`
    """
    if weight.ndim < values.ndim:
        weight = weight.reshape(*weight.shape, *[1] * (values.ndim - weight.ndim))
    if weight.ndim != values.ndim or any(w not in (1, n) for w, n in zip(weight.shape, values.shape, strict=True)):
        raise ShapeError(
            f"sample_weight of shape {tuple(weight.shape)} does not fit losses of shape {tuple(values.shape)}"
        )
    return weight

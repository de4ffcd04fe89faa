"""Losses."""

from __future__ import annotations

from tallow.apply import apply
from tallow.offer import offer
from tallow.ops.cross_entropy import cross_entropy_of_classes
from tallow.tensor import Tensor


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """`reduction`, unless the older arguments that it replaces are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


@offer("F")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    reduction = _reduction(size_average, reduce, reduction)
    return apply(
        cross_entropy_of_classes, input, target, weight,
        ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing,
    )  # fmt: skip

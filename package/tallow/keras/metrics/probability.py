"""Losses on distributions, and hinge losses, as metrics."""

from __future__ import annotations

from typing import Any

from tallow.keras import losses
from tallow.keras.metrics.reduction import MeanMetricWrapper


class BinaryCrossentropy(MeanMetricWrapper):
    """Mean of losses.binary_crossentropy over all samples."""

    def __init__(
        self,
        name: str = "binary_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(losses.binary_crossentropy, name, dtype, **options)


class CategoricalCrossentropy(MeanMetricWrapper):
    """Mean of losses.categorical_crossentropy over all samples."""

    def __init__(
        self,
        name: str = "categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> None:
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(losses.categorical_crossentropy, name, dtype, **options)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """Mean of losses.sparse_categorical_crossentropy over all samples."""

    def __init__(
        self,
        name: str = "sparse_categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(losses.sparse_categorical_crossentropy, name, dtype, from_logits=from_logits, axis=axis)


class KLDivergence(MeanMetricWrapper):
    """Mean of losses.kl_divergence over all samples."""

    def __init__(self, name: str = "kl_divergence", dtype: Any = None) -> None:
        super().__init__(losses.kl_divergence, name, dtype)


class Poisson(MeanMetricWrapper):
    """Mean of losses.poisson over all samples."""

    def __init__(self, name: str = "poisson", dtype: Any = None) -> None:
        super().__init__(losses.poisson, name, dtype)


class Hinge(MeanMetricWrapper):
    """Mean of losses.hinge over all samples."""

    def __init__(self, name: str = "hinge", dtype: Any = None) -> None:
        super().__init__(losses.hinge, name, dtype)


class SquaredHinge(MeanMetricWrapper):
    """Mean of losses.squared_hinge over all samples."""

    def __init__(self, name: str = "squared_hinge", dtype: Any = None) -> None:
        super().__init__(losses.squared_hinge, name, dtype)


class CategoricalHinge(MeanMetricWrapper):
    """Mean of losses.categorical_hinge over all samples."""

    def __init__(self, name: str = "categorical_hinge", dtype: Any = None) -> None:
        super().__init__(losses.categorical_hinge, name, dtype)

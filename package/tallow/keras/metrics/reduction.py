"""Sums and means of values over batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.keras import losses
from tallow.keras.layers.masks import masks_of
from tallow.keras.losses.loss import as_floats, masked, same_rank
from tallow.keras.metrics.metric import Metric, gather
from tallow.keras.naming import automatic_name


class Sum(Metric):
    """Weighted sum of all values."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable(dtype=tl.float64, name="total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        values = tl.as_tensor(values)
        sums, _ = samplewise(values, sample_weight, "sum")
        gather(self.total, sums.sum(dtype=np.float64), values.device)

    def result(self) -> Tensor:
        return self.total.to(tl.get_default_dtype())


class Mean(Metric):
    """Weighted mean of all values; 0 before the first."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable(dtype=tl.float64, name="total")
        self.count = self.add_variable(dtype=tl.float64, name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        values = tl.as_tensor(values)
        means, weight = samplewise(values, sample_weight, "mean")
        gather(self.total, means.sum(dtype=np.float64), values.device)
        gather(self.count, means.size if weight is None else weight.sum(dtype=np.float64), values.device)

    def result(self) -> Tensor:
        total, count = self.total.array, self.count.array
        xp = array_module(total)
        mean = xp.where(count == 0, 0.0, total / xp.where(count == 0, 1.0, count))
        return wrap(dtypes.cast(xp.asarray(mean), tl.get_default_dtype()))


class MeanMetricWrapper(Mean):
    """Mean of a function of (y_true, y_pred) with fixed keyword arguments."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name or automatic_name(fn.__name__), dtype)
        self._fn = fn
        self._fn_kwargs = kwargs
        if fn in losses.FUNCTIONS.values():
            self.direction = "down"

    def update_state(  # type: ignore[override]  # Keras's hierarchy
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        mask = masks_of(y_pred)
        with tl.no_grad():
            values = self._fn(*as_floats(y_true, y_pred), **self._fn_kwargs)
            if mask is not None:
                sample_weight = masked(sample_weight, mask, values, "sum")
        super().update_state(values, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._fn_kwargs


def samplewise(values: Tensor, sample_weight: Any, reduction: str) -> tuple[Array, Array | None]:
    """Return the weighted value of each sample and its weight, as arrays, reducing further axes by "sum" or "mean".

    Shapes:  values (B, ...) -> (B), or () -> ();  sample_weight: the leading axes of values
    """
    if values.ndim == 0 and isinstance(sample_weight, int | float):
        return dtypes.widen(values.array) * sample_weight, np.float64(sample_weight)
    weight = None
    if sample_weight is not None:
        weights = tl.as_tensor(sample_weight, dtype=values.dtype, device=values.device)
        values, weights = same_rank(values, weights)
        weight = dtypes.widen(weights.array)
    result = dtypes.widen(values.array)
    if weight is not None:
        result = _reduced(result, weight.ndim, reduction)
        weight = array_module(result).broadcast_to(weight, result.shape)
        result = result * weight
        weight = _reduced(weight, 1, reduction)
    return _reduced(result, 1, reduction), weight


def _reduced(array: Array, ndim: int, reduction: str) -> Array:
    """Reduce all axes after the first `ndim`."""
    if array.ndim <= ndim:
        return array
    return getattr(array, reduction)(axis=tuple(range(ndim, array.ndim)))

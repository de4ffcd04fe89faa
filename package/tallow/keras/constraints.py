"""What weights are held to after each step of an optimizer, under Keras' names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.keras.lookup import made
from tallow.keras.naming import snake_case
from tallow.keras.settings import epsilon
from tallow.tensor import Tensor

Axis = int | Sequence[int]


class Constraint:
    """Base of the constraints. A subclass defines `__call__(w)`, the weight that takes the place of `w`, and
    `get_config` for its arguments.
    """

    def __call__(self, w: Tensor) -> Tensor:
        return w

    def get_config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)


class _OfNorms(Constraint):
    """Base of those that scale the vectors along `axis`, which a list makes several axes.

    A Dense kernel has shape (inputs, units): axis 0 makes a vector of all that reaches a unit.
    """

    axis: Axis

    def _norms(self, w: Tensor) -> Tensor:
        return w.square().sum(self.axis if isinstance(self.axis, int) else tuple(self.axis), keepdim=True).sqrt()


class MaxNorm(_OfNorms):
    """Vectors no longer than `max_value`: w · min(norm, max_value) / (epsilon + norm)."""

    def __init__(self, max_value: float = 2, axis: Axis = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w: Tensor) -> Tensor:
        norms = self._norms(w)
        return w * (norms.clamp(0, self.max_value) / (epsilon() + norms))

    def get_config(self) -> dict[str, Any]:
        return {"max_value": self.max_value, "axis": self.axis}


class MinMaxNorm(_OfNorms):
    """Vectors with a length between two bounds, or moved the part `rate` of the way to there."""

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Axis = 0) -> None:
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w: Tensor) -> Tensor:
        norms = self._norms(w)
        wanted = self.rate * norms.clamp(self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (wanted / (epsilon() + norms))

    def get_config(self) -> dict[str, Any]:
        return {"min_value": self.min_value, "max_value": self.max_value, "rate": self.rate, "axis": self.axis}


class UnitNorm(_OfNorms):
    """Vectors of length 1."""

    def __init__(self, axis: Axis = 0) -> None:
        self.axis = axis

    def __call__(self, w: Tensor) -> Tensor:
        return w / (epsilon() + self._norms(w))

    def get_config(self) -> dict[str, Any]:
        return {"axis": self.axis}


class NonNeg(Constraint):
    """No element below 0."""

    def __call__(self, w: Tensor) -> Tensor:
        return tl.maximum(w, tl.zeros_like(w))


max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm
CLASSES: dict[str, type[Constraint]] = {c.__name__: c for c in (Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm)}
NAMES = CLASSES | {snake_case(name): found for name, found in CLASSES.items()}


def get(identifier: Any) -> Any:
    """The constraint for a name, a class, a saved configuration or a function of a weight; None for None.

    Raises:  ArgumentError for an unknown name, with the names that come near; ArgumentTypeError for anything else
    """
    return None if identifier is None else made(identifier, NAMES, "a constraint", "a weight")


def serialize(constraint: Constraint) -> dict[str, Any]:
    """What `deserialize` makes the same constraint of."""
    return {"class_name": type(constraint).__name__, "config": constraint.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
    """The constraint that `serialize` wrote down.

    Raises:  ArgumentError for a class that is neither one of these nor in `custom_objects`
    """
    return made(config, NAMES | (custom_objects or {}), "a constraint", "a weight")


__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "UnitNorm",
    "deserialize",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "serialize",
    "unit_norm",
]

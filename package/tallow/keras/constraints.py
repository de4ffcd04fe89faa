"""Constraints on weights, applied after each optimizer step, under their Keras names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.lookup import classes_of, resolve
from tallow.keras.naming import snake_case
from tallow.keras.settings import epsilon
from tallow.lazy_names import names_of

Axis = int | Sequence[int]


class Constraint:
    """Base class of constraints.

    A subclass defines `__call__(w)`, which returns the replacement of the weight `w`, and `get_config` for its
    arguments.
    """

    def __call__(self, w: Tensor) -> Tensor:
        return w

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Create a constraint from its configuration."""
        return cls(**config)


class _NormConstraint(Constraint):
    """Base class of constraints that scale the vectors along `axis`, one axis or a list.

    A Dense kernel has shape (inputs, units), so that axis 0 constrains the incoming weights of each unit.
    """

    axis: Axis

    def _norms(self, w: Tensor) -> Tensor:
        return w.square().sum(self.axis if isinstance(self.axis, int) else tuple(self.axis), keepdim=True).sqrt()


class MaxNorm(_NormConstraint):
    """Limit the norm of vectors to `max_value`: w · min(norm, max_value) / (epsilon + norm)."""

    def __init__(self, max_value: float = 2, axis: Axis = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w: Tensor) -> Tensor:
        norms = self._norms(w)
        return w * (norms.clamp(0, self.max_value) / (epsilon() + norms))

    def get_config(self) -> dict[str, Any]:
        return {"max_value": self.max_value, "axis": self.axis}


class MinMaxNorm(_NormConstraint):
    """Move the norm of vectors into a range, or by the fraction `rate` of the distance to it."""

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Axis = 0) -> None:
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w: Tensor) -> Tensor:
        norms = self._norms(w)
        new_norms = self.rate * norms.clamp(self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (new_norms / (epsilon() + norms))

    def get_config(self) -> dict[str, Any]:
        return {"min_value": self.min_value, "max_value": self.max_value, "rate": self.rate, "axis": self.axis}


class UnitNorm(_NormConstraint):
    """Scale vectors to length 1."""

    def __init__(self, axis: Axis = 0) -> None:
        self.axis = axis

    def __call__(self, w: Tensor) -> Tensor:
        return w / (epsilon() + self._norms(w))

    def get_config(self) -> dict[str, Any]:
        return {"axis": self.axis}


class NonNeg(Constraint):
    """Replace negative elements by 0."""

    def __call__(self, w: Tensor) -> Tensor:
        return tl.maximum(w, tl.zeros_like(w))


max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm
CLASSES = {"Constraint": Constraint} | classes_of(globals(), Constraint)
NAMES = CLASSES | {snake_case(name): cls for name, cls in CLASSES.items()}


def get(identifier: Any) -> Any:
    """Return the constraint for a name, a class, a saved configuration or a function of a weight; None for None.

    Raises:  ArgumentError for an unknown name, with similar names; ArgumentTypeError for anything else
    """
    return None if identifier is None else resolve(identifier, NAMES, "a constraint", "a weight")


def serialize(constraint: Constraint) -> dict[str, Any]:
    """Return the class name and arguments of a constraint, for `deserialize`."""
    return {"class_name": type(constraint).__name__, "config": constraint.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
    """Return the constraint that `serialize` described.

    Raises:  ArgumentError for a class that is neither a known constraint nor in `custom_objects`
    """
    return resolve(config, NAMES | (custom_objects or {}), "a constraint", "a weight")


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

__getattr__, __dir__ = names_of(__name__)

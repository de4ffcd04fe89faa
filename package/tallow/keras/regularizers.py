"""Penalties on weights that are added to the loss, under their Keras names."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.lookup import classes_of, resolve
from tallow.lazy_names import names_of
from tallow.nn import functional as F


class Regularizer:
    """Base class of regularizers; a subclass defines `__call__(x)`, a scalar, and `get_config` for its arguments."""

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(x)")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Create a regularizer from its configuration."""
        return cls(**config)


class L1L2(Regularizer):
    """Return l1 Σ|x| + l2 Σx²."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = _check_factor(0.0 if l1 is None else l1)
        self.l2 = _check_factor(0.0 if l2 is None else l2)

    def __call__(self, x: Tensor) -> Tensor:
        penalty = self.l2 * (x * x).sum()
        return penalty + self.l1 * x.abs().sum() if self.l1 else penalty

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1, "l2": self.l2}


class L1(Regularizer):
    """Return l1 Σ|x|."""

    def __init__(self, l1: float = 0.01) -> None:
        self.l1 = _check_factor(l1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.l1 * x.abs().sum()

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1}


class L2(Regularizer):
    """Return l2 Σx²."""

    def __init__(self, l2: float = 0.01) -> None:
        self.l2 = _check_factor(l2)

    def __call__(self, x: Tensor) -> Tensor:
        return self.l2 * (x * x).sum()

    def get_config(self) -> dict[str, Any]:
        return {"l2": self.l2}


class OrthogonalRegularizer(Regularizer):
    """Return factor times the mean |cos| of the angles between the rows of a matrix, or between its columns.

    Args:    mode: "rows" or "columns".
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        if mode not in ("rows", "columns"):
            raise ArgumentError(f"OrthogonalRegularizer: mode={mode!r}", hint='use "rows" or "columns"')
        self.factor = _check_factor(factor)
        self.mode = mode

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim != 2:
            raise ShapeError(f"OrthogonalRegularizer: expected a matrix, got shape {tuple(x.shape)}")
        rows = F.normalize(x if self.mode == "rows" else x.mT, dim=1)
        size = len(rows)
        cosines = rows @ rows.mT
        total = (cosines * (1 - tl.eye(size, dtype=x.dtype, device=x.device))).abs().sum()
        return self.factor * 0.5 * total / (size * (size - 1) / 2)

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "mode": self.mode}


def _check_factor(factor: float) -> float:
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor < float("inf"):
        raise ArgumentError(f"a regularizer's factor must be a number of at least 0, got {factor!r}")
    return float(factor)


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
CLASSES = classes_of(globals(), Regularizer)
NAMES = CLASSES | {"l1": L1, "l2": L2, "l1_l2": L1L2, "orthogonal_regularizer": OrthogonalRegularizer}


def get(identifier: Any) -> Any:
    """Return the regularizer for a name, a class, a saved configuration or a function of a tensor; None for None.

    Raises:  ArgumentError for an unknown name, with similar names; ArgumentTypeError for anything else
    """
    return None if identifier is None else resolve(identifier, NAMES, "a regularizer", "a tensor")


def serialize(regularizer: Regularizer) -> dict[str, Any]:
    """Return the class name and arguments of a regularizer, for `deserialize`."""
    return {"class_name": type(regularizer).__name__, "config": regularizer.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
    """Return the regularizer that `serialize` described.

    Raises:  ArgumentError for a class that is neither a known regularizer nor in `custom_objects`
    """
    return resolve(config, NAMES | (custom_objects or {}), "a regularizer", "a tensor")


__all__ = [
    "L1",
    "L1L2",
    "L2",
    "OrthogonalRegularizer",
    "Regularizer",
    "deserialize",
    "get",
    "l1",
    "l1_l2",
    "l2",
    "orthogonal_regularizer",
    "serialize",
]

__getattr__, __dir__ = names_of(__name__)

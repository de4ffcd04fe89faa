"""Penalties on weights that are added to the loss, under Keras' names."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.lookup import find
from tallow.tensor import Tensor


class Regularizer:
    """Base of the regularizers. A subclass defines `__call__(x)`, a scalar, and `get_config` for its arguments."""

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no __call__(x)")

    def get_config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)


class L1L2(Regularizer):
    """l1 Σ|x| + l2 Σx²."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = _checked(0.0 if l1 is None else l1)
        self.l2 = _checked(0.0 if l2 is None else l2)

    def __call__(self, x: Tensor) -> Tensor:
        penalty = self.l2 * (x * x).sum()
        return penalty + self.l1 * x.abs().sum() if self.l1 else penalty

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1, "l2": self.l2}


class L1(Regularizer):
    """l1 Σ|x|."""

    def __init__(self, l1: float = 0.01) -> None:
        self.l1 = _checked(l1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.l1 * x.abs().sum()

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1}


class L2(Regularizer):
    """l2 Σx²."""

    def __init__(self, l2: float = 0.01) -> None:
        self.l2 = _checked(l2)

    def __call__(self, x: Tensor) -> Tensor:
        return self.l2 * (x * x).sum()

    def get_config(self) -> dict[str, Any]:
        return {"l2": self.l2}


def _checked(factor: float) -> float:
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor < float("inf"):
        raise ArgumentError(f"a regularizer's factor must be a number of at least 0, got {factor!r}")
    return float(factor)


l1, l2, l1_l2 = L1, L2, L1L2
CLASSES: dict[str, type[Regularizer]] = {"L1": L1, "L2": L2, "L1L2": L1L2}
NAMES = CLASSES | {"l1": L1, "l2": L2, "l1_l2": L1L2}


def get(identifier: Any) -> Any:
    """The regularizer for a name, a class, a saved configuration, a callable, or None, for which there is none.

    Raises:  ArgumentError for an unknown name, with the names that come near; ArgumentTypeError for anything else
    """
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return find(identifier["class_name"], NAMES, "a regularizer").from_config(identifier["config"])
    if isinstance(identifier, str):
        return find(identifier, NAMES, "a regularizer")()
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier):
        return identifier
    raise ArgumentTypeError(f"{identifier!r} is neither a regularizer's name nor a function of a tensor")


__all__ = ["L1", "L1L2", "L2", "Regularizer", "get", "l1", "l1_l2", "l2"]

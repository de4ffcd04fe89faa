"""Layer weights: tallow parameters and buffers with the methods of Keras variables."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.nn import Buffer, Parameter


class Variable(Tensor):
    """A weight: a named tensor with in-place assignment.

    Attributes:
        name: the name in the layer, such as "kernel".
        regularizer: a function of the weight that is added to the loss, or None.
        constraint: a function whose result replaces the weight after each optimizer step, or None.
    """

    name: str
    regularizer: Any = None
    constraint: Any = None

    @property
    def trainable(self) -> bool:
        """True if the weight is trained."""
        return self.requires_grad

    @property
    def value(self) -> Tensor:
        """The weight itself, as Keras code expects a tensor here."""
        return self

    def numpy(self, *, force: bool = True) -> np.ndarray[Any, Any]:
        """Return a copy of the values, as Keras does, even if the weight requires grad."""
        return super().numpy(force=force).copy()

    def assign(self, value: Any) -> Variable:
        """Copy the values of a tensor, an array or a number of the same shape into the weight's memory.

        Raises:  ShapeError for another shape
        """
        new = value if isinstance(value, Tensor) else tl.tensor(np.asarray(value), dtype=self.dtype)
        if tuple(new.shape) != tuple(self.shape):
            raise ShapeError(f"{self.name}: cannot assign {tuple(new.shape)} to a weight of shape {tuple(self.shape)}")
        with tl.no_grad():
            self.copy_(new)
        return self

    def assign_add(self, value: Any) -> Variable:
        """Add a value to the weight in place."""
        with tl.no_grad():
            return self.assign(self + self._as_operand(value))

    def assign_sub(self, value: Any) -> Variable:
        """Subtract a value from the weight in place."""
        with tl.no_grad():
            return self.assign(self - self._as_operand(value))

    def _as_operand(self, value: Any) -> Any:
        """Convert an array to a tensor on the weight's device; return anything else unchanged."""
        return tl.as_tensor(value, device=self.device) if isinstance(value, np.ndarray) else value


class Weight(Variable, Parameter):
    """A weight created as trainable."""


class State(Variable, Buffer):
    """A weight that is not trained, such as a moving mean."""


def make_variable(
    value: Tensor, name: str, trainable: bool, regularizer: Any = None, constraint: Any = None
) -> Variable:
    """Create a weight from its initial value."""
    variable: Variable = Weight(value) if trainable else State(value)
    variable.name = name
    variable.regularizer = regularizer
    variable.constraint = constraint
    return variable

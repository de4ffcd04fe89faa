"""The weights of layers: tallow's parameters and buffers with the methods of Keras' variables."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ShapeError
from tallow.nn import Buffer, Parameter
from tallow.tensor import Tensor


class Variable(Tensor):
    """A weight: a tensor with a name that can be assigned to.

    Attributes:
        name: what the layer calls it, such as "kernel".
        regularizer: a function of it that is added to the loss, or None.
        constraint: a function of it whose result takes its place after each step of an optimizer, or None.
    """

    name: str
    regularizer: Any = None
    constraint: Any = None

    @property
    def trainable(self) -> bool:
        return self.requires_grad

    @property
    def value(self) -> Tensor:
        return self

    def numpy(self, *, force: bool = True) -> np.ndarray[Any, Any]:
        """The values, as Keras gives them: of a weight that requires grad too, and a copy."""
        return super().numpy(force=force).copy()

    def assign(self, value: Any) -> Variable:
        """Take the values of a tensor, an array or a number of this shape. The memory stays the weight's own.

        Raises:  ShapeError for another shape
        """
        new = value if isinstance(value, Tensor) else tl.tensor(np.asarray(value), dtype=self.dtype)
        if tuple(new.shape) != tuple(self.shape):
            raise ShapeError(f"{self.name}: cannot assign {tuple(new.shape)} to a weight of shape {tuple(self.shape)}")
        with tl.no_grad():
            self.copy_(new)
        return self

    def assign_add(self, value: Any) -> Variable:
        with tl.no_grad():
            return self.assign(self + self._beside(value))

    def assign_sub(self, value: Any) -> Variable:
        with tl.no_grad():
            return self.assign(self - self._beside(value))

    def _beside(self, value: Any) -> Any:
        """An array as a tensor on the weight's device; what is none stays as it is."""
        return tl.as_tensor(value, device=self.device) if isinstance(value, np.ndarray) else value


class Weight(Variable, Parameter):
    """A weight that is learned, or was made to be."""


class State(Variable, Buffer):
    """A weight that is not learned, such as a moving mean."""


def make_variable(
    value: Tensor, name: str, trainable: bool, regularizer: Any = None, constraint: Any = None
) -> Variable:
    made: Variable = Weight(value) if trainable else State(value)
    made.name = name
    made.regularizer = regularizer
    made.constraint = constraint
    return made

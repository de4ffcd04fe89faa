"""Layer weights: tallow parameters and buffers with the methods of Keras variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import initializers
from tallow.keras.dtype_names import as_dtype
from tallow.keras.functions.operands import tensor
from tallow.keras.settings import floatx
from tallow.nn import Buffer, Parameter
from tallow.nn.parameter import _ParameterMeta


class _Kinds(type):
    """Makes `Variable(...)` a `Weight` or a `State`, which modules register when they are assigned."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _variable(*args, **kwargs) if cls is Variable else super().__call__(*args, **kwargs)


class Variable(Tensor, metaclass=_Kinds):
    """A weight: a named tensor with in-place assignment.

    Args:
        initializer: the values, or a function or the name of an initializer, which then needs `shape`.
        dtype: by default that of the values, and `floatx` for Python numbers with a fraction.
        trainable: train it; integers and booleans are never trained.
        name: by default "variable".
        autocast, aggregation, synchronization: accepted for Keras compatibility; they have no effect.

    Raises:  ArgumentError for an initializer without a shape; ShapeError for values of another shape

    Attributes:
        name: the name in the layer, such as "kernel".
        path: the layer's name and that of the weight, such as "dense/kernel"; of a variable without a layer its name.
        regularizer: a function of the weight that is added to the loss, or None.
        constraint: a function whose result replaces the weight after each optimizer step, or None.
    """

    name: str
    path: str
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
        """Convert an array or a list to a tensor on the weight's device; return anything else unchanged."""
        return tl.as_tensor(value, device=self.device) if isinstance(value, np.ndarray | list | tuple) else value


class _KindsOfWeights(_Kinds, _ParameterMeta):
    """The class of both metaclasses of `Weight`."""


class Weight(Variable, Parameter, metaclass=_KindsOfWeights):
    """A weight created as trainable."""


class State(Variable, Buffer):
    """A weight that is not trained, such as a moving mean."""


def make_variable(
    value: Tensor, name: str, trainable: bool, regularizer: Any = None, constraint: Any = None
) -> Variable:
    """Create a weight from its initial value."""
    variable: Variable = Weight(value) if trainable else State(value)
    variable.name = variable.path = name
    variable.regularizer = regularizer
    variable.constraint = constraint
    return variable


def _variable(
    initializer: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    trainable: bool = True,
    autocast: bool = True,
    aggregation: str = "none",
    synchronization: str = "auto",
    name: str = "variable",
) -> Variable:
    """Return what `Variable(...)` makes."""
    if isinstance(initializer, str) or callable(initializer):
        if shape is None:
            raise ArgumentError(f"Variable {name!r}: an initializer needs a shape", hint="pass shape=(...)")
        value = tensor(initializers.get(initializer)(tuple(shape), dtype=as_dtype(dtype or floatx())))
    else:
        value = tensor(initializer, dtype).detach().clone()
    if shape is not None and tuple(value.shape) != tuple(shape):
        raise ShapeError(f"Variable {name!r}: values of shape {tuple(value.shape)}, but shape={tuple(shape)}")
    return make_variable(value, name, trainable and value.is_floating_point())

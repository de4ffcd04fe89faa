"""The base of all metrics: numbers gathered over the batches of an epoch."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow import devices
from tallow.dtypes import Array
from tallow.keras.layers.variable import Variable
from tallow.keras.naming import automatic_name, snake_case
from tallow.tensor import Tensor


class Metric:
    """A number about all the batches seen since the last reset.

    A subclass makes its variables in `__init__` by `add_variable`, changes them in `update_state(y_true, y_pred,
    sample_weight=None)`, and returns the number, a tensor, from `result`. Nothing is recorded for autograd.

    Args:
        name: what it is called in `history` and the progress bar; the class's name, in snake case, if it is not given.

        dtype: taken for Keras's sake, and changes nothing: sums are float64, results the default dtype.

    Attributes:
        direction: which way is better, "up" or "down", for callbacks whose mode is "auto"; None if neither is.
    """

    direction: str | None = None

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        self.name = name or automatic_name(snake_case(type(self).__name__))
        self.dtype = dtype
        self._variables: list[tuple[Variable, Any]] = []

    def add_variable(
        self, shape: Any = (), initializer: Any = "zeros", dtype: Any = None, name: str | None = None
    ) -> Variable:
        """A variable that `reset_state` sets back to its start: "zeros", "ones", or a function of the shape."""
        make = {"zeros": tl.zeros, "ones": tl.ones, None: tl.zeros}.get(initializer, initializer)
        variable = Variable(make(tuple(shape)).to(dtype or tl.get_default_dtype()))
        variable.name = name or "variable"
        self._variables.append((variable, make))
        return variable

    def add_weight(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None
    ) -> Variable:
        return self.add_variable(shape, initializer, dtype, name)

    @property
    def variables(self) -> list[Variable]:
        return [variable for variable, _ in self._variables]

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no update_state(y_true, y_pred, sample_weight=None)")

    def result(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no result()")

    def reset_state(self) -> None:
        for variable, make in self._variables:
            variable.assign(make(tuple(variable.shape)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`update_state`, then the `result`."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def gather(variable: Variable, amount: Array, device: devices.device) -> None:
    """variable += amount, on the amount's device and unrecorded."""
    if variable.device != device:
        variable.array = devices.move(variable.array, device)
    variable.array[...] += amount


def divide_or_zero(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where b is 0."""
    empty = b == 0
    return tl.where(empty, 0.0, a / tl.where(empty, 1.0, b))

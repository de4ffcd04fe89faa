"""Base class of the metrics: values accumulated over the batches of an epoch."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow import devices
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.keras.layers.variable import Variable
from tallow.keras.naming import automatic_name, snake_case


class Metric:
    """A value computed over all batches since the last reset.

    A subclass creates its variables in `__init__` with `add_variable`, changes them in `update_state(y_true, y_pred,
    sample_weight=None)`, and returns the value, a tensor, from `result`. Autograd records nothing.

    Args:
        name: the name in `history` and the progress bar; by default the class name in snake case.
        dtype: accepted for Keras compatibility without effect: sums are float64, results the default dtype.

    Attributes:
        direction: the better direction, "up" or "down", for callbacks with mode "auto"; None if there is none.
    """

    direction: str | None = None

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        self.name = name or automatic_name(snake_case(type(self).__name__))
        self.dtype = dtype
        self._variables: list[tuple[Variable, Any]] = []

    def add_variable(
        self, shape: Any = (), initializer: Any = "zeros", dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Create a variable that `reset_state` resets to "zeros", "ones", or the result of a function of the shape."""
        make = {"zeros": tl.zeros, "ones": tl.ones, None: tl.zeros}.get(initializer, initializer)
        variable = Variable(make(tuple(shape)).to(dtype or tl.get_default_dtype()))
        variable.name = name or "variable"
        self._variables.append((variable, make))
        return variable

    def add_weight(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Create a variable, as `add_variable` does."""
        return self.add_variable(shape, initializer, dtype, name)

    @property
    def variables(self) -> list[Variable]:
        """The variables created by `add_variable`."""
        return [variable for variable, _ in self._variables]

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch to the state; subclasses define it."""
        raise NotImplementedError(
            f"{type(self).__name__} does not define update_state(y_true, y_pred, sample_weight=None)"
        )

    def result(self) -> Any:
        """Return the value of the metric; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define result()")

    def reset_state(self) -> None:
        """Reset all variables to their initial values."""
        for variable, make in self._variables:
            variable.assign(make(tuple(variable.shape)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `update_state`, then return `result`."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """Create a metric from its configuration."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def gather(variable: Variable, amount: Array, device: devices.device) -> None:
    """Add to a variable on the amount's device, without recording."""
    if variable.device != device:
        variable.array = devices.move(variable.array, device)
    variable.array[...] += amount


def divide_or_zero(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, and 0 where b is 0."""
    is_zero = b == 0
    return tl.where(is_zero, 0.0, a / tl.where(is_zero, 1.0, b))

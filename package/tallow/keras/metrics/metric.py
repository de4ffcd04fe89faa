"""The base of all metrics: numbers gathered over the batches of an epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tallow as tl
from tallow.keras import losses
from tallow.keras.losses.loss import as_floats, same_rank
from tallow.keras.naming import automatic_name, snake_case
from tallow.tensor import Tensor


class Variable(Tensor):
    """A tensor that a metric gathers in, under Keras's names for writing to it."""

    def __init__(self, value: Tensor, name: str | None = None) -> None:
        super().__init__(value.array)
        self.name = name

    def assign(self, value: Any) -> Variable:
        with tl.no_grad():
            self.copy_(tl.as_tensor(value))
        return self

    def assign_add(self, value: Any) -> Variable:
        if isinstance(value, Tensor) and value.device != self.device:  # gather where the numbers are made
            self.array = self.to(value.device).array
        return self.assign(self.detach() + value)

    def assign_sub(self, value: Any) -> Variable:
        return self.assign_add(-value)


class Metric:
    """A number about all the batches seen since the last reset.

    A subclass makes its variables in `__init__` by `add_variable`, changes them in `update_state(y_true, y_pred,
    sample_weight=None)`, and returns the number, a tensor, from `result`. Nothing is recorded for autograd.

    Args:
        name: what it is called in `history` and the progress bar; the class's name, in snake case, if it is not given.

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
        variable = Variable(make(tuple(shape)).to(dtype or tl.get_default_dtype()), name)
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


class _Reduction(Metric):
    """Values, weighted and added up, in float64."""

    def __init__(self, name: str | None, dtype: Any) -> None:
        super().__init__(dtype, name)
        self.total = self.add_variable(dtype=tl.float64, name="total")


def samplewise(values: Any, sample_weight: Any, reduce: Callable[..., Tensor]) -> tuple[Tensor, Tensor | None]:
    """One value for each sample, weighted, and its weight.

    Shapes:  values (B, ...) -> (B), or () -> ();  sample_weight any leading part of it
    """
    values = tl.as_tensor(values).detach()
    weight = None
    if sample_weight is not None:
        weight = tl.as_tensor(sample_weight, dtype=values.dtype, device=values.device).detach()
        values, weight = same_rank(values, weight)
        if values.ndim > weight.ndim:
            values = reduce(values, tuple(range(weight.ndim, values.ndim)))
        weight = tl.broadcast_to(weight, values.shape)
        values = values * weight
        if weight.ndim > 1:
            weight = reduce(weight, tuple(range(1, weight.ndim)))
    if values.ndim > 1:
        values = reduce(values, tuple(range(1, values.ndim)))
    return values, weight


class Sum(_Reduction):
    """The weighted sum of all values."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        values, _ = samplewise(values, sample_weight, tl.sum)
        self.total.assign_add(values.sum())

    def result(self) -> Tensor:
        return self.total.to(tl.get_default_dtype())


class Mean(_Reduction):
    """The weighted mean of all values; 0 before the first."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.count = self.add_variable(dtype=tl.float64, name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        values, weight = samplewise(values, sample_weight, tl.mean)
        self.total.assign_add(values.sum())
        self.count.assign_add(values.numel() if weight is None else weight.sum())

    def result(self) -> Tensor:
        return divide_or_zero(self.total, self.count).to(tl.get_default_dtype())


class MeanMetricWrapper(Mean):
    """The mean of a function of (y_true, y_pred), which is called with the further arguments given here."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name or automatic_name(fn.__name__), dtype)
        self._fn = fn
        if fn in losses.FUNCTIONS.values():
            self.direction = "down"
        self._fn_kwargs = kwargs

    def update_state(  # type: ignore[override]  # Keras's hierarchy
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        super().update_state(self._values(y_true, y_pred), sample_weight)

    def _values(self, y_true: Any, y_pred: Any) -> Any:
        with tl.no_grad():
            return self._fn(*as_floats(y_true, y_pred), **self._fn_kwargs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._fn_kwargs


def divide_or_zero(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where b is 0."""
    empty = b == 0
    return tl.where(empty, 0.0, a / tl.where(empty, 1.0, b))

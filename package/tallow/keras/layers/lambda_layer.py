"""Layers made of functions: Lambda, Identity, Masking, and the operators of symbolic tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.keras.layers.activation import Elementwise
from tallow.keras.layers.layer import Layer
from tallow.keras.naming import automatic_name
from tallow.keras.serialization import LAMBDA, refuse_code
from tallow.keras.shapes import is_shape
from tallow.keras.symbolic import KerasTensor
from tallow.tensor import Tensor


class Lambda(Layer):
    """Any function of tensors as a layer.

    A lambda cannot be saved, and is not loaded: a file holds no code. A function made by `def` is saved by its name,
    and `load_model(path, custom_objects={name: function})` puts it back.

    Args:
        output_shape: of a sample; or a function of the input's shape; by default the function is run on zeros to see.
        mask: what `compute_mask` is to return, or a function for it.
        arguments: further keyword arguments for the function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(function, dict) and function.get("class_name") == LAMBDA:
            refuse_code(f"the function of {self.name}")
        if not callable(function):
            raise ArgumentTypeError(f"{self.name}: {function!r:.100} is not a function")
        self.function = function
        self.given_shape = output_shape
        self.mask = mask
        self.arguments = dict(arguments or {})
        self.supports_masking = mask is not None

    def call(self, inputs: Any) -> Any:
        return self.function(inputs, **self.arguments)

    def compute_output_shape(self, input_shape: Any) -> Any:
        if self.given_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self.given_shape):
            return self.given_shape(input_shape)
        batch = input_shape[0] if is_shape(input_shape) else input_shape[0][0]
        return (batch, *self.given_shape)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        if self.given_shape is None:  # the function may change the dtype too
            return self._probe(args, kwargs)
        return super().compute_output_spec(*args, **kwargs)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        return self.mask(inputs, previous_mask) if callable(self.mask) else self.mask


class Identity(Elementwise):
    """x itself."""

    def call(self, x: Any) -> Any:
        return x


class Masking(Elementwise):
    """Let layers after this one pass over the steps whose features are all `mask_value`, which become 0."""

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Tensor, previous_mask: Any = None) -> Tensor:
        return (inputs != self.mask_value).any(-1)

    def call(self, x: Tensor) -> Tensor:
        return x * self.compute_mask(x)[..., None].to(x.dtype)


def _item(x: Any, index: Any) -> Any:
    return x[tuple(index) if isinstance(index, list) else index]


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "power": operator.pow,
    "matmul": operator.matmul,
    "negative": operator.neg,
    "absolute": operator.abs,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "get_item": _item,
}


class Operator(Layer):
    """An operator of Python as a layer: what `x + y` of symbolic tensors makes.

    Args:    operator: one of OPERATORS.
    """

    def __init__(self, operator: str, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=automatic_name(operator) if name is None else name, **kwargs)
        if operator not in OPERATORS:
            raise ArgumentTypeError(f"{operator!r} is not an operator", mend=f"use one of {', '.join(OPERATORS)}")
        self.operator = operator
        self.built = True

    def call(self, *operands: Any) -> Any:
        return OPERATORS[self.operator](*operands)


def _offer(dunder: str, name: str, is_reflected: bool = False) -> None:
    def apply(self: KerasTensor, *others: Any) -> Any:
        operands = (*others, self) if is_reflected else (self, *others)
        return Operator(name)(*operands)

    setattr(KerasTensor, dunder, apply)


for _dunder, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
                       "floordiv": "floor_divide", "pow": "power", "matmul": "matmul"}.items():  # fmt: skip
    _offer(f"__{_dunder}__", _name)
    _offer(f"__r{_dunder}__", _name, is_reflected=True)
for _dunder, _name in {"neg": "negative", "abs": "absolute", "gt": "greater", "ge": "greater_equal", "lt": "less",
                       "le": "less_equal", "getitem": "get_item"}.items():  # fmt: skip
    _offer(f"__{_dunder}__", _name)

"""Layers that apply Python operators and `keras.ops` functions to symbolic tensors."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.functions import FUNCTIONS, IMAGE, LINALG
from tallow.keras.layers.layer import Layer
from tallow.keras.naming import automatic_name
from tallow.keras.operations import CLASSES, OPERATIONS
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.symbolic import KerasTensor, is_symbolic


def _item(x: Any, index: Any) -> Any:
    return x[tuple(index) if isinstance(index, list) else index]


OPERATORS: dict[str, Callable[..., Any]] = (
    FUNCTIONS
    | IMAGE
    | {
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
)


class Operator(Layer):
    """Apply a Python operator or a function of `keras.ops`.

    Args:
        operator: one of OPERATORS.
        options: arguments that are the same in every call, such as an axis.
    """

    def __init__(
        self, operator: str, name: str | None = None, options: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=automatic_name(operator) if name is None else name, **kwargs)
        if operator not in OPERATORS:
            raise ArgumentTypeError(f"{operator!r} is not an operator", hint=f"use one of {', '.join(OPERATORS)}")
        self.operator = operator
        self.options = dict(options or {})
        self.built = True

    def _probe_value(self, shape: list[int], dtype: Any) -> Tensor:
        if self.operator not in LINALG or len(shape) < 2:
            return super()._probe_value(shape, dtype)
        return tl.eye(*shape[-2:], dtype=dtype).expand(*shape)  # invertible, unlike zeros

    def call(self, *operands: Any, **options: Any) -> Any:
        function = OPERATORS[self.operator]
        options = {**self.options, **options}
        leading = takewhile(
            lambda name: name in self.options, _positions(function)
        )  # positional options come first, such as the subscripts of einsum
        return function(*[options.pop(name) for name in [*leading]], *operands, **options)

    def _convert(self, leaf: Any) -> Any:
        """Convert arrays to tensors; an operator keeps the dtypes of its operands."""
        return tl.as_tensor(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else leaf

    def file_entry(self) -> dict[str, Any] | None:
        """Return the entry that describes the operation in Keras' files; None if Keras has no such operation."""
        operation = OPERATIONS.get(self.operator)
        if operation is None:
            return None
        return {
            "module": operation.module,
            "class_name": operation.class_name,
            "config": {"name": self.name, **{key: serialize_keras_object(v) for key, v in self.options.items()}},
            "registered_name": operation.class_name,
        }

    @classmethod
    def from_file_entry(cls, class_name: Any, config: dict[str, Any]) -> Operator:
        """Create an operator from an entry of `file_entry`.

        Raises:  ArgumentError for an unknown operation, or an unsupported option
        """
        operation = CLASSES.get(class_name) if isinstance(class_name, str) else None
        if operation is None or operation.name not in OPERATORS:
            raise ArgumentError(f"unknown operation {class_name!r:.100}")
        arguments = {key: deserialize_keras_object(value) for key, value in config.items() if key != "name"}
        parameters = inspect.signature(OPERATORS[operation.name]).parameters
        has_kwargs = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        options = {key: value for key, value in arguments.items() if has_kwargs or key in parameters}
        for key in arguments.keys() - options.keys():
            if arguments[key] is not None and arguments[key] is not False and arguments[key] != 0:
                raise ArgumentError(f"the operation {class_name} with {key}={arguments[key]!r:.100} is not supported")
        return cls(operation.name, config.get("name"), options)


def apply_symbolic(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the KerasTensors of a symbolic call of a `keras.ops` function."""
    operation = OPERATIONS.get(name)
    if operation is None:
        return Operator(name)(*args, **kwargs)
    positions = _positions(OPERATORS[name])
    options = {key: value for key, value in kwargs.items() if key in operation.options}
    others = {key: value for key, value in kwargs.items() if key not in operation.options}
    operands = []
    for index, value in enumerate(args):
        key = positions[index] if index < len(positions) else None
        if key is None and operation.options and not is_symbolic(value):
            key = next((option for option in operation.options if option not in options), None)
        if key in operation.options:
            options[key] = value
        elif key is not None and options:  # an option before it took its position
            others[key] = value
        else:
            operands.append(value)
    return Operator(name, options=options)(*operands, **others)


@functools.cache
def _positions(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the positional parameters; () for a builtin function without a signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def _define_operator(dunder: str, name: str, is_reflected: bool = False) -> None:
    """Define an operator of KerasTensor."""

    def apply(self: KerasTensor, *others: Any) -> Any:
        operands = (*others, self) if is_reflected else (self, *others)
        return Operator(name)(*operands)

    setattr(KerasTensor, dunder, apply)


for _dunder, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
                       "floordiv": "floor_divide", "pow": "power", "matmul": "matmul"}.items():  # fmt: skip
    _define_operator(f"__{_dunder}__", _name)
    _define_operator(f"__r{_dunder}__", _name, is_reflected=True)
for _dunder, _name in {"neg": "negative", "abs": "absolute", "gt": "greater", "ge": "greater_equal", "lt": "less",
                       "le": "less_equal", "getitem": "get_item"}.items():  # fmt: skip
    _define_operator(f"__{_dunder}__", _name)

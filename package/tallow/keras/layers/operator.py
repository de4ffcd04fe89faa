"""What operators on symbolic tensors, and functions of `keras.ops`, make: layers that apply them."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.functions import FUNCTIONS, IMAGE, LINALG
from tallow.keras.layers.layer import Layer
from tallow.keras.naming import automatic_name
from tallow.keras.operations import CLASSES, OPERATIONS
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.symbolic import KerasTensor, is_symbolic
from tallow.tensor import Tensor


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
    """An operator of Python, or a function of `keras.ops`, as a layer.

    Args:
        operator: one of OPERATORS.
        options: arguments of the function that are the same in every call, such as an axis.
    """

    def __init__(
        self, operator: str, name: str | None = None, options: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=automatic_name(operator) if name is None else name, **kwargs)
        if operator not in OPERATORS:
            raise ArgumentTypeError(f"{operator!r} is not an operator", mend=f"use one of {', '.join(OPERATORS)}")
        self.operator = operator
        self.options = dict(options or {})
        self.built = True

    def _probe_value(self, shape: list[int], dtype: Any) -> Tensor:
        if self.operator not in LINALG or len(shape) < 2:
            return super()._probe_value(shape, dtype)
        return tl.eye(*shape[-2:], dtype=dtype).expand(*shape)  # zeros have no inverse

    def call(self, *operands: Any, **options: Any) -> Any:
        function = OPERATORS[self.operator]
        options = {**self.options, **options}
        leading = takewhile(lambda name: name in self.options, _positions(function))  # the subscripts of einsum
        return function(*[options.pop(name) for name in [*leading]], *operands, **options)

    def _convert(self, leaf: Any) -> Any:
        """Arrays as tensors; an operator keeps the dtypes of its operands."""
        return tl.as_tensor(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else leaf

    def file_entry(self) -> dict[str, Any] | None:
        """How Keras' files describe it; None for a function that is no operation there."""
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
        """What `file_entry` described.

        Raises:  ArgumentError for an operation, or an option of one, that there is not
        """
        operation = CLASSES.get(class_name) if isinstance(class_name, str) else None
        if operation is None or operation.name not in OPERATORS:
            raise ArgumentError(f"the operation {class_name!r:.100} is not known")
        given = {key: deserialize_keras_object(value) for key, value in config.items() if key != "name"}
        parameters = inspect.signature(OPERATORS[operation.name]).parameters
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        options = {key: value for key, value in given.items() if takes_all or key in parameters}
        for key in given.keys() - options.keys():
            if given[key] is not None and given[key] is not False and given[key] != 0:
                raise ArgumentError(f"the operation {class_name} with {key}={given[key]!r:.100} is not supported")
        return cls(operation.name, config.get("name"), options)


def applied(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The KerasTensors of a call of a function with KerasTensors."""
    operation = OPERATIONS.get(name)
    if operation is None:
        return Operator(name)(*args, **kwargs)
    positions = _positions(OPERATORS[name])
    options = {key: value for key, value in kwargs.items() if key in operation.options}
    others = {key: value for key, value in kwargs.items() if key not in operation.options}
    operands = []
    for place, value in enumerate(args):
        key = positions[place] if place < len(positions) else None
        if key is None and operation.options and not is_symbolic(value):
            key = next((option for option in operation.options if option not in options), None)
        if key in operation.options:
            options[key] = value
        elif key is not None and options:  # its place is no longer its own: an option came before it
            others[key] = value
        else:
            operands.append(value)
    return Operator(name, options=options)(*operands, **others)


@functools.cache
def _positions(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the positional parameters; () for a builtin function that does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


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

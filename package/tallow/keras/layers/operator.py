"""What operators on symbolic tensors, and functions of `keras.ops`, make: layers that apply them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.keras.functions import FUNCTIONS
from tallow.keras.layers.layer import Layer
from tallow.keras.naming import automatic_name
from tallow.keras.symbolic import KerasTensor


def _item(x: Any, index: Any) -> Any:
    return x[tuple(index) if isinstance(index, list) else index]


OPERATORS: dict[str, Callable[..., Any]] = FUNCTIONS | {
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
    """An operator of Python, or a function of `keras.ops`, as a layer.

    Args:    operator: one of OPERATORS.
    """

    def __init__(self, operator: str, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=automatic_name(operator) if name is None else name, **kwargs)
        if operator not in OPERATORS:
            raise ArgumentTypeError(f"{operator!r} is not an operator", mend=f"use one of {', '.join(OPERATORS)}")
        self.operator = operator
        self.built = True

    def call(self, *operands: Any, **options: Any) -> Any:
        return OPERATORS[self.operator](*operands, **options)


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

"""ONNX constants: values in attributes.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.registry import operator


@operator("Constant", since=1)
def constant(
    *,
    sparse_value: Tensor | None = None,
    value: Any = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Any:
    """Return the value of the attribute that is given.  Raises: ArgumentError unless it is one"""
    numbers = [(tl.float32, value_float), (tl.float32, value_floats), (tl.int64, value_int), (tl.int64, value_ints)]
    given = [tl.tensor(each, dtype=dtype) for dtype, each in numbers if each is not None]
    given += [np.array(each, object) for each in (value_string, value_strings) if each is not None]
    given += [each for each in (value, sparse_value) if each is not None]
    if len(given) != 1:
        raise ArgumentError(f"Constant: {len(given)} values", hint="one attribute holds the value")
    return given[0]

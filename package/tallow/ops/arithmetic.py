"""Sums, products and quotients of two operands: the operators of Python, and their variants with a factor."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.table import Array, Result, Scalar, op


@op("tl Tensor Tensor_", dtypes="promote")
def add(input: Array | Scalar, other: Array | Scalar, *, alpha: Scalar = 1) -> Result:
    """input + alpha · other, broadcast."""
    if alpha != 1:
        return input + other * alpha, lambda g: (g, lambda: g * alpha)
    return input + other, lambda g: (g, g)


@op("tl Tensor Tensor_", dtypes="promote")
def mul(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input · other, broadcast."""
    return input * other, lambda g: (lambda: g * other, lambda: g * input)

"""Bitwise operators on integers, and the same operators as logic on booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, Scalar, widen
from tallow.errors import ArgumentError, ArgumentTypeError, DimensionError, ShapeError
from tallow.ops.checks import kind, unsupported
from tallow.ops.reduction import Dims, axes_of, kept_shape, left_shape
from tallow.ops.table import Result, op


def _check(name: str, *operands: Any, kinds: str = "biu") -> None:
    for x in operands:
        if kind(x) not in kinds:
            expected = "integers or booleans" if "b" in kinds else "integers"
            hint = "use a logical_ op; floats compare to booleans first"
            raise unsupported(name, getattr(x, "dtype", type(x)), expected, hint)


@op("tl Tensor Tensor_", batched="elementwise")
def bitwise_not(input: Array) -> Result:
    """Invert every bit; for booleans, logical not."""
    if kind(input) == "f":
        raise ArgumentTypeError("bitwise_not: ~ is only implemented on integers and booleans", hint="use logical_not")
    return ~input, None


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def bitwise_and(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return the bits that are set in both operands, broadcast; for booleans, logical and."""
    _check("bitwise_and", input, other)
    return input & other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def bitwise_or(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return the bits that are set in either operand, broadcast; for booleans, logical or."""
    _check("bitwise_or", input, other)
    return input | other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def bitwise_xor(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return the bits that differ, broadcast; for booleans, exclusive or."""
    _check("bitwise_xor", input, other)
    return input ^ other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def bitwise_left_shift(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return input · 2^other, broadcast; bits shifted out are lost."""
    _check("bitwise_left_shift", input, other, kinds="iu")
    return input << other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def bitwise_right_shift(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return floor(input / 2^other), broadcast: the sign bit is repeated."""
    _check("bitwise_right_shift", input, other, kinds="iu")
    return input >> other, None  # type: ignore[operator]


@op(dtypes="keep", batched="dim")
def hash_tensor(input: Array, dim: Dims = (), *, keepdim: bool = False, mode: int = 0) -> Result:
    """Return the exclusive or of the bits of all elements over `dim`, each as a number of 64 bits.

    Dtypes:  any but complex -> uint64; floats are converted to float64, integers and bool to int64
    Raises:  ArgumentError for a mode other than 0; ShapeError, DimensionError where there is no element
    """
    if mode != 0:
        raise ArgumentError(f"Unknown hash_tensor mode: {mode}", hint="0 is exclusive or, the only one that there is")
    if kind(input) == "c":
        raise unsupported("hash_tensor", input.dtype, "real numbers")
    axes = axes_of(input, dim, "hash_tensor")
    shape, kept = input.shape, kept_shape(input.shape, axes)
    if not all(shape[axis] for axis in axes):
        error = ShapeError if dim is None or dim == () else DimensionError
        raise error(f"hash_tensor: no elements to reduce in shape {shape}, dim={dim}")
    x = widen(input)
    wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64).view(np.uint64)
    others = [axis for axis in range(len(shape)) if axis not in axes]
    rows = wide.transpose(*axes, *others).reshape(-1, *[shape[axis] for axis in others])
    while (n := len(rows)) > 1:  # halves; CuPy has no reduction by exclusive or
        halved = rows[: n // 2] ^ rows[n // 2 : n - n % 2]
        rows = array_module(x).concatenate([halved, rows[n - n % 2 :]])
    return rows.reshape(kept if keepdim else left_shape(shape, axes)), None

"""Bitwise operators on integers, and the same operators as logic on booleans."""

from __future__ import annotations

from typing import Any

from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentTypeError
from tallow.ops.checks import kind, unsupported
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

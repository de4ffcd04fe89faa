"""Bits of integers, and the same operators on booleans as logic."""

from __future__ import annotations

from typing import Any

from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentTypeError, DtypeError
from tallow.ops.expect import kind
from tallow.ops.table import Result, op


def _check(name: str, *operands: Any, kinds: str = "biu") -> None:
    for x in operands:
        if kind(x) not in kinds:
            raise DtypeError(
                f"{name}: not implemented for {getattr(x, 'dtype', type(x).__name__)}",
                mend="use integers, or a logical_ op; floats compare to booleans first",
            )


@op("tl Tensor Tensor_")
def bitwise_not(input: Array) -> Result:
    """Every bit turned; of booleans, not."""
    if kind(input) == "f":
        raise ArgumentTypeError("bitwise_not: ~ is only implemented on integers and booleans", mend="use logical_not")
    return ~input, None


@op("tl Tensor Tensor_", dtypes="promote")
def bitwise_and(input: Array | Scalar, other: Array | Scalar) -> Result:
    """The bits that are set in both, broadcast; of booleans, and."""
    _check("bitwise_and", input, other)
    return input & other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote")
def bitwise_or(input: Array | Scalar, other: Array | Scalar) -> Result:
    """The bits that are set in either, broadcast; of booleans, or."""
    _check("bitwise_or", input, other)
    return input | other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote")
def bitwise_xor(input: Array | Scalar, other: Array | Scalar) -> Result:
    """The bits that differ, broadcast; of booleans, exclusive or."""
    _check("bitwise_xor", input, other)
    return input ^ other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote")
def bitwise_left_shift(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input · 2^other, broadcast; bits that leave are lost."""
    _check("bitwise_left_shift", input, other, kinds="iu")
    return input << other, None  # type: ignore[operator]


@op("tl Tensor Tensor_", dtypes="promote")
def bitwise_right_shift(input: Array | Scalar, other: Array | Scalar) -> Result:
    """floor(input / 2^other), broadcast: the sign bit is repeated."""
    _check("bitwise_right_shift", input, other, kinds="iu")
    return input >> other, None  # type: ignore[operator]

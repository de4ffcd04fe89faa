"""Divisors and multiples of integers."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops.checks import kind, unsupported
from tallow.ops.table import Result, op


def _check(name: str, *operands: Array) -> None:
    for x in operands:
        if kind(x) not in "iu":
            raise unsupported(name, x.dtype, "integers")


@op("tl tl_ Tensor Tensor_", dtypes="promote", batched="elementwise")
def gcd(input: Array, other: Array) -> Result:
    """Return the greatest common divisor, broadcast; that of 0 and n is |n|."""
    _check("gcd", input, other)
    return array_module(input, other).gcd(input, other), None


@op("tl tl_ Tensor Tensor_", dtypes="promote", batched="elementwise")
def lcm(input: Array, other: Array) -> Result:
    """Return the least common multiple, broadcast; that of 0 and n is 0."""
    _check("lcm", input, other)
    return array_module(input, other).lcm(input, other), None

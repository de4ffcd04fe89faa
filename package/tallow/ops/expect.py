"""Checks that many ops make of their operands."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.errors import DtypeError


def expect_float(name: str, *operands: Array) -> None:
    """Raises: DtypeError for an operand of integers or booleans."""
    for x in operands:
        if x.dtype.kind != "f":
            message = f"{name}: expected a floating point tensor, got {x.dtype}"
            raise DtypeError(message, mend="convert it first: x.float()")

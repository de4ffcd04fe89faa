"""The kind of number an operand holds, and checks of it that many ops make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallow.dtypes import HALVES, Array
from tallow.errors import DtypeError, UnsupportedDtypeError

# PyTorch's names of dtypes in its errors, which people search for.
TYPE_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def kind(x: Any) -> str:
    """Return the kind of an array or a Python number as NumPy's letter: b, i, u, f or c."""
    try:
        return x.dtype.kind
    except AttributeError:
        return np.result_type(type(x)).kind


def no_floats(*operands: Any) -> bool:
    """Return whether no operand is a float or complex."""
    return all(kind(x) not in "fc" for x in operands)


def expect_float(name: str, *operands: Array) -> None:
    """Raise DtypeError if an operand has integers or booleans. Ops that refuse complex numbers have done so before."""
    for x in operands:
        if x.dtype.kind not in "fc" and x.dtype not in HALVES:
            raise unsupported(name, x.dtype, "a floating point tensor", hint="convert it first: x.float()")


def unsupported(name: str, dtype: Any, expected: str, hint: str | None = None) -> UnsupportedDtypeError:
    """Return the error for a dtype that an op has no code for.

    Args:    dtype: of tallow or of NumPy, its name, or the type of a Python number
    """
    given = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or np.dtype(dtype).name
    return UnsupportedDtypeError(
        f"{name}: not implemented for '{TYPE_NAMES.get(given, given)}': expected {expected}, got {given}", hint
    )


def refuse_bools(name: str, *operands: Any) -> None:
    """Raise DtypeError for a subtraction if an operand is a boolean."""
    for x in operands:
        if kind(x) == "b":
            raise DtypeError(
                f"{name}: subtraction, the `-` operator, with a bool tensor is not supported",
                hint="use ^ or logical_xor for two masks, ~ to invert one, and .int() for a count",
            )


def refuse(kinds: str, name: str, operands: Iterable[Any]) -> None:
    """Raise DtypeError for an operand of the kinds that an op refuses, see `tallow.ops.table.op`."""
    if kinds == "bool":
        refuse_bools(name, *operands)
    for x in operands if kinds == "half" else ():
        if getattr(x, "dtype", None) in HALVES:
            given = "bfloat16" if x.dtype.kind == "u" else "float16"
            raise unsupported(name, given, "float32 or float64", hint="convert it first: x.float()")


def refuse_complex(name: str, operands: Iterable[Any]) -> None:
    """Raise DtypeError for a complex operand."""
    for x in operands:
        if x is not None and kind(x) == "c":
            given = getattr(x, "dtype", np.complex64)
            raise unsupported(name, given, "real numbers", hint="complex numbers have no order; see real, imag and abs")


def refuse_bool(name: str, *operands: Any) -> None:
    """Raise DtypeError if all operands are booleans."""
    for x in operands:
        if kind(x) != "b":
            return
    raise unsupported(name, np.bool_, "numbers", hint="convert first, e.g. with .long()")

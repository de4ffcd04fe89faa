"""The kind of number an operand holds, and checks of it that many ops make."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.dtypes import HALVES, Array
from tallow.errors import DtypeError


def kind(x: Any) -> str:
    """Return the kind of an array or a Python number as NumPy's letter: b, i, u or f."""
    try:
        return x.dtype.kind
    except AttributeError:
        return np.result_type(type(x)).kind


def no_floats(*operands: Any) -> bool:
    """Return whether no operand is a float."""
    return all(kind(x) != "f" for x in operands)


def expect_float(name: str, *operands: Array) -> None:
    """Raise DtypeError if an operand has integers or booleans."""
    for x in operands:
        if x.dtype.kind != "f" and x.dtype not in HALVES:
            message = f"{name}: expected a floating point tensor, got {x.dtype}"
            raise DtypeError(message, hint="convert it first: x.float()")


def refuse_bool(name: str, *operands: Any) -> None:
    """Raise DtypeError if all operands are booleans."""
    for x in operands:
        if kind(x) != "b":
            return
    raise DtypeError(f"{name}: not implemented for bool", hint="convert first, e.g. with .long()")

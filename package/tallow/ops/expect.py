"""What kind of numbers an operand holds, and the checks of it that many ops make."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.dtypes import HALVES, Array
from tallow.errors import DtypeError


def kind(x: Any) -> str:
    """The kind of an array or a Python number, by NumPy's letter: b, i, u or f."""
    return x.dtype.kind if hasattr(x, "dtype") else np.result_type(type(x)).kind


def no_floats(*operands: Any) -> bool:
    return all(kind(x) != "f" for x in operands)


def expect_float(name: str, *operands: Array) -> None:
    """Raises: DtypeError for an operand of integers or booleans."""
    for x in operands:
        if x.dtype.kind != "f" and x.dtype not in HALVES:
            message = f"{name}: expected a floating point tensor, got {x.dtype}"
            raise DtypeError(message, mend="convert it first: x.float()")


def refuse_bool(name: str, *operands: Any) -> None:
    """Raises: DtypeError if nothing but booleans is given."""
    if all(kind(x) == "b" for x in operands):
        raise DtypeError(f"{name}: not implemented for bool", mend="convert first, e.g. with .long()")

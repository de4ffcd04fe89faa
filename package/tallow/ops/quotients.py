"""Quotients rounded down, and what division leaves, as Python has them.

NumPy's operators are these. CuPy's are floor(x / y) and x - floor(x / y) · y for floats, where x / y is rounded first
(1 // 0.1 is 10) and 5 % inf is NaN; and its fmod takes integers through double. There they are made of fmod of floats,
which is exact, and of % of integers. A Python number may stand for one of the two operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.ops.expect import no_floats


def floor_quotient(x: Any, y: Any) -> Any:
    """floor(x / y), of the exact quotient."""
    xp = array_module(x, y)
    if xp is np or no_floats(x, y):
        return x // y
    x, y = _arrays(xp, x, y)
    rest = xp.fmod(x, y)
    quotient = (x - rest) / y  # nearly whole
    quotient = xp.where((rest != 0) & ((rest < 0) != (y < 0)), quotient - 1, quotient)
    whole = xp.floor(quotient)
    whole = xp.where(quotient - whole > 0.5, whole + 1, whole)
    whole = xp.where(quotient == 0, xp.copysign(quotient, x / y), whole)
    return xp.where(y == 0, x / y, whole)


def modulus(x: Any, y: Any) -> Any:
    """x - floor(x / y) · y, of the exact quotient: it has the sign of y."""
    xp = array_module(x, y)
    if xp is np or no_floats(x, y):
        return x % y
    x, y = _arrays(xp, x, y)
    rest = xp.fmod(x, y)
    of_other_sign = (rest < 0) != (y < 0)
    return xp.where(rest == 0, xp.copysign(rest, y), xp.where(of_other_sign, rest + y, rest))


def truncated_rest(x: Any, y: Any) -> Any:
    """x - trunc(x / y) · y, of the exact quotient: it has the sign of x."""
    xp = array_module(x, y)
    if xp is np or not no_floats(x, y):
        return xp.fmod(x, y)
    rest = x % y
    return xp.where((rest != 0) & ((rest < 0) != (x < 0)), rest - y, rest)


def _arrays(xp: Any, *operands: Any) -> list[Any]:
    """The operands, a number as an array of the dtype that it would have in arithmetic with the other."""
    dtype = np.result_type(*(getattr(x, "dtype", x) for x in operands))
    return [x if hasattr(x, "dtype") else xp.full((), x, dtype) for x in operands]

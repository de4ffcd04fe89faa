"""Floor division and remainders with Python's semantics.

NumPy's operators have them. CuPy's are floor(x / y) and x - floor(x / y) · y for floats, where x / y is rounded first
(1 // 0.1 is 10) and 5 % inf is NaN; and its fmod converts integers to double. There they are computed with fmod of
floats, which is exact, and % of integers. One of the two operands may be a Python number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.ops.checks import no_floats


def floor_quotient(x: Any, y: Any) -> Any:
    """Return floor(x / y) of the exact quotient."""
    xp = array_module(x, y)
    if xp is np or no_floats(x, y):
        return x // y
    x, y = _arrays(xp, x, y)
    remainder = xp.fmod(x, y)
    quotient = (x - remainder) / y  # nearly an integer
    quotient = xp.where((remainder != 0) & ((remainder < 0) != (y < 0)), quotient - 1, quotient)
    floored = xp.floor(quotient)
    floored = xp.where(quotient - floored > 0.5, floored + 1, floored)
    floored = xp.where(quotient == 0, xp.copysign(quotient, x / y), floored)
    return xp.where(y == 0, x / y, floored)


def modulus(x: Any, y: Any) -> Any:
    """Return x - floor(x / y) · y of the exact quotient, with the sign of y."""
    xp = array_module(x, y)
    if xp is np or no_floats(x, y):
        return x % y
    x, y = _arrays(xp, x, y)
    remainder = xp.fmod(x, y)
    of_other_sign = (remainder < 0) != (y < 0)
    return xp.where(remainder == 0, xp.copysign(remainder, y), xp.where(of_other_sign, remainder + y, remainder))


def truncated_rest(x: Any, y: Any) -> Any:
    """Return x - trunc(x / y) · y of the exact quotient, with the sign of x."""
    xp = array_module(x, y)
    if xp is np or not no_floats(x, y):
        return xp.fmod(x, y)
    remainder = x % y
    return xp.where((remainder != 0) & ((remainder < 0) != (x < 0)), remainder - y, remainder)


def _arrays(xp: Any, *operands: Any) -> list[Any]:
    """Return both operands as arrays, a number in the dtype it would have in arithmetic with the other."""
    dtype = np.result_type(*(getattr(x, "dtype", x) for x in operands))
    return [x if hasattr(x, "dtype") else xp.full((), x, dtype) for x in operands]

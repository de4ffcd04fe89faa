"""A-law and mu-law, the samples of telephones: a bit for the sign, three for an exponent, four for a fraction.

Source:  ITU-T G.711, tables 1 and 2
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@cache
def mu_law() -> Floats:
    """The values of the bytes 0 to 255, from -1 to 1: all bits are written inverted.

    Shapes:  (256,)
    """
    sign, exponent, fraction = _fields(np.arange(256) ^ 0xFF)
    magnitude = ((2 * fraction + 33) << exponent) - 33  # of 14 bits
    return (np.where(sign, -magnitude, magnitude) / 8192).astype(np.float32)


@cache
def a_law() -> Floats:
    """The values of the bytes 0 to 255, from -1 to 1: every other bit is written inverted, and the sign.

    Shapes:  (256,)
    """
    sign, exponent, fraction = _fields(np.arange(256) ^ 0xD5)
    magnitude = (2 * fraction + 1 + 32 * (exponent > 0)) << np.maximum(exponent - 1, 0)  # of 13 bits
    return (np.where(sign, -magnitude, magnitude) / 4096).astype(np.float32)


def _fields(codes: npt.NDArray[np.int_]) -> tuple[npt.NDArray[np.int_], ...]:
    return codes >> 7, codes >> 4 & 7, codes & 15

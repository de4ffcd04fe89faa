"""A-law and mu-law, the sample formats of telephony: one sign bit, three exponent bits, four fraction bits.

Source:  ITU-T G.711, tables 1 and 2
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@cache
def mu_law() -> Floats:
    """Return the values of the bytes 0 to 255, from -1 to 1. All bits are stored inverted.

    Shapes:  (256,)
    """
    sign, exponent, fraction = _fields(np.arange(256) ^ 0xFF)
    magnitude = ((2 * fraction + 33) << exponent) - 33  # of 14 bits
    return (np.where(sign, -magnitude, magnitude) / 8192).astype(np.float32)


@cache
def a_law() -> Floats:
    """Return the values of the bytes 0 to 255, from -1 to 1. Every other bit and the sign are stored inverted.

    Shapes:  (256,)
    """
    sign, exponent, fraction = _fields(np.arange(256) ^ 0xD5)
    magnitude = (2 * fraction + 1 + 32 * (exponent > 0)) << np.maximum(exponent - 1, 0)  # of 13 bits
    return (np.where(sign, -magnitude, magnitude) / 4096).astype(np.float32)


def _fields(codes: npt.NDArray[np.int_]) -> tuple[npt.NDArray[np.int_], ...]:
    return codes >> 7, codes >> 4 & 7, codes & 15

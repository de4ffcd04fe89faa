"""Eight-bit floats: the values of their bytes, and the bytes of values.

| dtype | exponent, mantissa, bias | largest | special |
| --- | --- | --- | --- |
| float8_e4m3fn | 4, 3, 7 | 448 | NaN; what is larger becomes the largest |
| float8_e5m2 | 5, 2, 15 | 57344 | infinities, NaN |
| float8_e4m3fnuz | 4, 3, 8 | 240 | NaN in place of -0; what is larger becomes NaN |
| float8_e5m2fnuz | 5, 2, 16 | 57344 | as e4m3fnuz |
| float8_e8m0fnu | 8, 0, 127 | 2^127 | powers of two, NaN; no sign, no zero |

Source:  Micikevicius et al. 2022, arXiv:2209.05433, table 1; Noune et al. 2022, arXiv:2206.02915 (fnuz); OCP
         Microscaling Formats 1.0, section 5.4.1 (e8m0)
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

# Bits of the exponent and of the mantissa, and the exponent's bias.
FORMATS = {
    "float8_e4m3fn": (4, 3, 7),
    "float8_e5m2": (5, 2, 15),
    "float8_e4m3fnuz": (4, 3, 8),
    "float8_e5m2fnuz": (5, 2, 16),
    "float8_e8m0fnu": (8, 0, 127),
}
LARGEST = {name: {4: 448.0, 5: 57344.0, 8: 2.0**127}[bits] for name, (bits, _, _) in FORMATS.items()}
LARGEST["float8_e4m3fnuz"] = 240.0


@cache
def values_of(name: str) -> np.ndarray[Any, Any]:
    """Return the values of all 256 bytes, in float32."""
    exponent_bits, mantissa_bits, bias = FORMATS[name]
    byte = np.arange(256)
    if mantissa_bits == 0:
        return np.where(byte == 255, np.nan, 2.0 ** (byte - bias)).astype(np.float32)
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (byte & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if name.endswith("fnuz"):
        values[128] = np.nan  # the byte of -0
    elif name.endswith("fn"):
        values[byte & 127 == 127] = np.nan
    else:
        largest = exponent == (1 << exponent_bits) - 1
        values[largest] = np.where(fraction[largest] == 0, np.inf, np.nan)
    return np.where(byte < 128, values, -values).astype(np.float32)


def bytes_of(values: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Return the bytes of the nearest values, uint8; of two equally near ones the even byte."""
    magnitude = np.abs(values.astype(np.float32)).astype(np.float64)
    largest = LARGEST[name]
    if name == "float8_e8m0fnu":
        _, exponent = np.frexp(magnitude)  # magnitude = fraction · 2^exponent, with a fraction from 1/2
        low = np.ldexp(1.0, exponent - 1)
        nearest = exponent - 1 + (magnitude >= 1.5 * low) + 127
        nearest = np.where(magnitude < 2.0**-126, magnitude > 2.0**-127, nearest)  # subnormal in float32
        return np.where(np.isfinite(magnitude), np.minimum(nearest, 255), 255).astype(np.uint8)
    positive = values_of(name)[:128].astype(np.float64)
    positive = positive[positive <= largest]  # without infinity and NaN
    midpoints = (positive[1:] + positive[:-1]) / 2
    below = np.searchsorted(midpoints, magnitude, side="left")
    is_tie = np.searchsorted(midpoints, magnitude, side="right") != below
    nearest = below + (is_tie & (below % 2 == 1))
    beyond = magnitude >= largest + (positive[-1] - positive[-2]) / 2
    negative = np.where(np.signbit(values), 128, 0)
    if name.endswith("fnuz"):
        packed = np.where(nearest == 0, 0, nearest + negative)
        return np.where(beyond | np.isnan(magnitude), 128, packed).astype(np.uint8)
    if name == "float8_e5m2":
        nearest = np.where(beyond, 124, nearest)  # infinity
    return (np.where(np.isnan(magnitude), 127, nearest) + negative).astype(np.uint8)

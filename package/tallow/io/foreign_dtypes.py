"""Dtypes of files that tallow lacks. Their elements are read into the smallest dtype that holds all values exactly.

    uint16                                  int32
    uint64                                  int64, if the values fit
    float8: e4m3fn, e5m2, and their fnuz    float16
    float8_e8m0fnu, powers of two           bfloat16

Source:  Micikevicius et al. 2022, arXiv:2209.05433, table 1; Noune et al. 2022, arXiv:2206.02915 (fnuz); OCP
         Microscaling Formats 1.0, section 5.4.1 (e8m0)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.dtypes import Dtype
from tallow.errors import CheckpointError
from tallow.io.source import Bytes

# Bits of the exponent and of the mantissa, and the exponent's bias.
FLOAT8 = {
    "float8_e4m3fn": (4, 3, 7),
    "float8_e5m2": (5, 2, 15),
    "float8_e4m3fnuz": (4, 3, 8),
    "float8_e5m2fnuz": (5, 2, 16),
    "float8_e8m0fnu": (8, 0, 127),
}


@dataclass(frozen=True)
class ForeignDtype:
    """A dtype of files.

    Attributes:
        name: PyTorch's.
        itemsize: the size of an element in the file, in bytes.
        dtype: of the tensors that are read.
    """

    name: str
    itemsize: int
    dtype: Dtype

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def read(self, raw: Bytes, where: str) -> np.ndarray[Any, Any]:
        """Return a flat array of the elements in `raw`, in new memory.

        Raises:  CheckpointError that starts with `where`, for integers beyond int64
        """
        if self.itemsize == 1:
            return _float8_values(self.name)[raw]
        elements = raw.view(f"<u{self.itemsize}")
        limit = np.iinfo(self.dtype.storage).max
        if len(elements) and elements.max() > limit:
            raise CheckpointError(f"{where} has {self.name} values above {limit}", hint="convert it to float64")
        return elements.astype(self.dtype.storage)


BY_NAME = {
    dtype.name: dtype
    for dtype in (
        ForeignDtype("uint16", 2, dtypes.int32),
        ForeignDtype("uint64", 8, dtypes.int64),
        *(ForeignDtype(name, 1, dtypes.bfloat16 if "e8m0" in name else dtypes.float16) for name in FLOAT8),
    )
}


@cache
def _float8_values(name: str) -> np.ndarray[Any, Any]:
    """Return the values of all 256 bytes, in float16 or bfloat16."""
    exponent_bits, mantissa_bits, bias = FLOAT8[name]
    byte = np.arange(256)
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (byte & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    if mantissa_bits == 0:  # no zero, no sign
        values = np.where(byte == 255, np.nan, 2.0 ** (byte - bias))
        return dtypes.cast(values.astype(np.float32), dtypes.bfloat16)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if name.endswith("fnuz"):
        values[128] = np.nan  # the byte of -0
    elif name.endswith("fn"):
        values[byte & 127 == 127] = np.nan
    else:
        largest = exponent == (1 << exponent_bits) - 1
        values[largest] = np.where(fraction[largest] == 0, np.inf, np.nan)
    return np.where(byte < 128, values, -values).astype(np.float16)

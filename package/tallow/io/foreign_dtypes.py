"""Dtypes of files that tallow lacks. Their elements are read into the smallest dtype that holds all values exactly.

uint16                                  int32
uint64                                  int64, if the values fit
float8: e4m3fn, e5m2, and their fnuz    float16
float8_e8m0fnu, powers of two           bfloat16
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.dtypes import Dtype
from tallow.errors import CheckpointError
from tallow.float8 import FORMATS, values_of
from tallow.io.source import Bytes


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
            return dtypes.cast(values_of(self.name), self.dtype)[raw]
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
        *(ForeignDtype(name, 1, dtypes.bfloat16 if "e8m0" in name else dtypes.float16) for name in FORMATS),
    )
}

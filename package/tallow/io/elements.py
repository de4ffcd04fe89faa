"""From a file's bytes to an array: what every format that stores plain little-endian elements does with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.dtypes import Dtype
from tallow.errors import CheckpointError
from tallow.io.source import Bytes


def as_elements(raw: Bytes, dtype: Dtype, where: str) -> np.ndarray[Any, Any]:
    """The flat array whose elements are `raw`: a view of it, or a copy if it is not aligned for the dtype.

    Raises:  CheckpointError, beginning with `where`, for a boolean that is not 0 or 1
    """
    if dtype.category == 0 and len(raw) and raw.max() > 1:
        raise CheckpointError(f"{where} holds booleans other than 0 and 1")
    elements = raw.view(dtype.storage)
    return elements if elements.flags.aligned else raw.copy().view(dtype.storage)

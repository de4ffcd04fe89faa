"""Convert bytes of little-endian elements to an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.dtypes import Dtype
from tallow.errors import CheckpointError
from tallow.io.source import Bytes


def as_elements(raw: Bytes, dtype: Dtype, where: str) -> np.ndarray[Any, Any]:
    """Return a flat array over the bytes `raw`: a view, or a copy if they are not aligned for the dtype.

    Raises:  CheckpointError that starts with `where`, for a boolean that is not 0 or 1
    """
    if dtype.category == 0 and len(raw) and raw.max() > 1:
        raise CheckpointError(f"{where} contains booleans other than 0 and 1")
    elements = raw.view(dtype.storage)
    return elements if elements.flags.aligned else raw.copy().view(dtype.storage)

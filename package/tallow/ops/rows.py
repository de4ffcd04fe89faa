"""Arrays reshaped to matrices of rows."""

from __future__ import annotations

import math

from tallow.dtypes import Array


def as_rows(x: Array, dims: int = 1) -> Array:
    """Merge the last `dims` dims into one, and those before them into another. Unlike reshape(-1, n), accepts n = 0."""
    if dims == 1 and x.ndim == 2:
        return x
    split = x.ndim - dims
    return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))

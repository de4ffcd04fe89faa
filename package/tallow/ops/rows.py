"""An array as a matrix of rows."""

from __future__ import annotations

import math

from tallow.dtypes import Array


def as_rows(x: Array, dims: int = 1) -> Array:
    """The last `dims` dimensions become one, and all before them another. Unlike reshape(-1, n), it takes n = 0."""
    split = x.ndim - dims
    return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))

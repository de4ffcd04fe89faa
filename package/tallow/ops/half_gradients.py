"""Gradients of halves that are written in half precision directly, without a float32 copy.

Gradients of halves are float32 and are rounded by the op or the leaf that receives them. If the only reader of a
`Roundable` gradient is a leaf, or rounds it before any other use, as `reads_rounded` declares, the engine skips the
float32 array. The result has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallow.dtypes import Array, dtype


class Roundable:
    """A gradient that is computed on demand, in float32 or rounded to half precision.

    An op's backward returns it in place of an array. `compute(dtype)` returns the array in a NumPy dtype.
    """

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[np.dtype[Any]], Array]) -> None:
        self.compute = compute

    def __call__(self) -> Array:
        """Return the gradient in float32, for callers that treat it as a function without arguments."""
        return self.compute(np.dtype(np.float32))


def reads_rounded(backward: Any, to: dtype) -> None:
    """Declare that `backward` first converts its gradient to `to`, and accepts a gradient already in that dtype."""
    backward.reads = to.storage


def dtype_read(backward: Any) -> np.dtype[Any] | None:
    """Return the storage dtype that `reads_rounded` declared, or None."""
    return getattr(backward, "reads", None)

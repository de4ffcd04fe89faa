"""Gradients of halves that are written in the half, without a copy in float32.

Gradients of halves travel in float32 and are rounded where they arrive. The engine leaves out the float32 array where
the only reader of a `Roundable` gradient rounds it before any other use, as `reads_rounded` declares. The result has
the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallow.dtypes import Array, dtype


class Roundable:
    """A gradient that is yet to be computed, in float32 or rounded to a half.

    An op's backward returns one in place of an array. `compute(dtype)` returns the array in a NumPy dtype.
    """

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[np.dtype[Any]], Array]) -> None:
        self.compute = compute

    def __call__(self) -> Array:
        """In float32, for callers that treat it as a function without arguments."""
        return self.compute(np.dtype(np.float32))


def reads_rounded(backward: Any, to: dtype) -> None:
    """Declare that `backward` converts its gradient to the dtype first, and takes one that is in that dtype already."""
    backward.reads = to.storage


def dtype_read(backward: Any) -> np.dtype[Any] | None:
    """The storage of what `reads_rounded` has declared; None without a declaration."""
    return getattr(backward, "reads", None)

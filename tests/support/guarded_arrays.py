"""GuardedArray arrays for C kernel tests: detect out-of-bounds writes and elements that were not written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]

POISON = np.float32(-7.25e30)
GUARD = 64


class GuardedArray:
    """A float32 array filled with a poison value between guard areas, offset by `shift` elements from alignment."""

    def __init__(self, *shape: int, shift: int = 0) -> None:
        n = math.prod(shape)
        self._all = np.full(n + 2 * GUARD + shift, POISON, np.float32)
        self.array = self._all[GUARD + shift : GUARD + shift + n].reshape(shape)
        self._outside = [self._all[: GUARD + shift], self._all[GUARD + shift + n :]]

    def check_outside(self) -> None:
        assert all((part == POISON).all() for part in self._outside), "written outside the array"

    def check(self) -> Array:
        """Return the array after checking that every element, and nothing outside it, was written."""
        self.check_outside()
        assert not (self.array == POISON).any(), "an element was not written"
        return self.array


@pytest.fixture
def poisoned_empty(monkeypatch: pytest.MonkeyPatch) -> list[GuardedArray]:
    """Replace numpy.empty by one that returns poisoned guarded float32 arrays; the fixture's value lists them."""
    arrays: list[GuardedArray] = []
    original_empty = np.empty

    # NumPy's own code calls it too: its generators take the default for the doubles that C writes into it.
    def empty(shape: Any, dtype: Any = float, *args: Any, **options: Any) -> Array:
        if dtype is None or np.dtype(dtype) != np.float32 or args or options:
            return original_empty(shape, dtype, *args, **options)
        arrays.append(GuardedArray(*np.atleast_1d(shape).tolist(), shift=1))
        return arrays[-1].array

    monkeypatch.setattr(np, "empty", empty)
    return arrays

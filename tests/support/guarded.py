"""Memory that tells what a kernel wrote: between guards, and poisoned before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]

POISON = np.float32(-7.25e30)
GUARD = 64


class Guarded:
    """A float32 array of poison between guards, `shift` elements off any alignment."""

    def __init__(self, *shape: int, shift: int = 0) -> None:
        n = math.prod(shape)
        self._all = np.full(n + 2 * GUARD + shift, POISON, np.float32)
        self.array = self._all[GUARD + shift : GUARD + shift + n].reshape(shape)
        self._outside = [self._all[: GUARD + shift], self._all[GUARD + shift + n :]]

    def check_outside(self) -> None:
        assert all((part == POISON).all() for part in self._outside), "written outside the array"

    def check(self) -> Array:
        """The array, once it is certain that all of it and nothing else was written."""
        self.check_outside()
        assert not (self.array == POISON).any(), "an element was not written"
        return self.array


@pytest.fixture
def poisoned_empty(monkeypatch: pytest.MonkeyPatch) -> list[Guarded]:
    """While it is active, numpy.empty hands out guarded poison; the arrays it handed out are in the list."""
    made: list[Guarded] = []
    plain_empty = np.empty

    def empty(shape: Any, dtype: Any = np.float32) -> Array:
        if dtype != np.float32:
            return plain_empty(shape, dtype)
        made.append(Guarded(*(shape if isinstance(shape, tuple) else (shape,)), shift=1))
        return made[-1].array

    monkeypatch.setattr(np, "empty", empty)
    return made

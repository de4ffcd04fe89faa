"""The arrays that tests of C kernels write into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray


def test_only_arrays_of_float32_are_guarded(poisoned_empty: list[GuardedArray]) -> None:
    shapes: list[Any] = [3, (2, 3), [2, 3], np.int64(4), ()]
    for shape in shapes:
        guarded = np.empty(shape, np.float32)
        assert guarded.shape == np.zeros(shape).shape
        assert guarded.dtype == np.float32
    assert len(poisoned_empty) == len(shapes)
    others = [np.empty(3), np.empty(3, None), np.empty(3, dtype=int), np.empty((2, 2), np.float32, "F")]
    assert [array.dtype for array in others] == [np.float64, np.float64, np.dtype(int), np.float32]
    assert len(poisoned_empty) == len(shapes)


def test_generators_write_inside_their_arrays(poisoned_empty: list[GuardedArray]) -> None:
    """They call numpy.empty without a dtype, and write doubles."""
    expected = 0.5
    for size in (1, 63, (4, 1000)):
        rng = np.random.default_rng(0)
        for draw in (rng.uniform, rng.normal, rng.gamma):
            drawn = draw(expected, 1.0, size)
            assert drawn.dtype == np.float64
            assert np.isfinite(drawn).all()
        assert rng.standard_normal(size, dtype=np.float32).dtype == np.float32
        rng.permutation(9), rng.integers(0, 9, size), np.random.RandomState(0).randn(7)
    for guarded in poisoned_empty:
        guarded.check()


def test_writing_outside_is_found() -> None:
    guarded = GuardedArray(3)
    guarded._all[0] = 0
    with pytest.raises(AssertionError, match="outside the array"):
        guarded.check_outside()

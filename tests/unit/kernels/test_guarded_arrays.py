"""The arrays that tests of C kernels write into."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray
from support.paths import ROOT


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


@pytest.mark.native
@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect, and signals of Linux")
@pytest.mark.parametrize(("at_end", "place", "ends"), [(True, 13, True), (False, -1, True), (True, 12, False)])
def test_a_page_without_access_ends_the_process(at_end: bool, place: int, ends: bool) -> None:
    """Byte 13 is the first after an array of 13, -1 the last before it."""
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from support.guarded_pages import GuardedPages
pages = GuardedPages((13,), "u1", {at_end})
ctypes.memset(pages.array.ctypes.data + {place}, 1, 1)
pages.check()
"""
    status = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode
    assert status == (-signal.SIGSEGV if ends else 0)


@pytest.mark.native
@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("at_end", [True, False])
def test_a_write_into_the_rest_of_a_page_is_found(at_end: bool) -> None:
    from support.guarded_pages import GuardedPages  # mmap, which Pyodide lacks

    pages = GuardedPages((3,), np.float32, at_end)
    pages.array[:] = 1
    pages.check()
    (pages._rest[-1:] if at_end else pages._rest[:1])[:] = 0
    with pytest.raises(AssertionError, match="outside the array"):
        pages.check()

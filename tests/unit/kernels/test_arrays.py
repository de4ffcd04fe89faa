"""Addresses of arrays for C, against NumPy's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tallow import kernels

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
ARRAYS = {
    "whole": BASE,
    "part": BASE[1:, 2:],
    "reversed": BASE[::-1, ::-2],
    "transposed": BASE.T,
    "zero-dim": np.array(3.0, np.float32),
    "empty": np.empty((0, 4), np.float32),
    "broadcast": np.broadcast_to(BASE[0], (3, 6)),
    "bytes": np.frombuffer(b"12345678", np.uint8),
    "unaligned": np.frombuffer(b"123456789", np.uint8)[1:].view(np.float32),
}


def address(array: Any) -> int:
    from tallow.kernels.bindings import arrays  # needs the library

    return arrays.address(array)


@pytest.mark.parametrize("name", ARRAYS)
def test_address_is_the_one_that_numpy_reports(name: str) -> None:
    assert address(ARRAYS[name]) == ARRAYS[name].ctypes.data


def test_address_of_a_mapped_file(tmp_path: Path) -> None:
    BASE.tofile(tmp_path / "rows")
    mapped: Any = np.memmap(tmp_path / "rows", np.float32, "r")
    assert address(mapped[5:]) == mapped[5:].ctypes.data

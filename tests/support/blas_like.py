"""NumPy stand-in for cuBLAS's batched matrix product: column-major matrices given by their addresses."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tallow.dtypes import HALVES, array_cast, dtype_of, float32
from tallow_cuda.matrices import Operand

INT_MAX = 2**31 - 1


def gemm(a: Operand, b: Operand, c: Operand, m: int, n: int, k: int, batch: int, add: bool = False) -> None:
    """Compute the product as `tallow_cuda.cublas.Cublas.gemm` does and check what cuBLAS requires of arguments."""
    assert a.dtype == b.dtype
    assert c.dtype in (a.dtype, np.float32)
    assert not c.transposed
    assert all(type(x) is int for x in (m, n, k, batch, *a[3:], *b[3:], *c[3:]))
    assert max(m, n, k, batch, a.leading, b.leading, c.leading) <= INT_MAX
    left = _matrices(a, (k, m) if a.transposed else (m, k), batch)
    right = _matrices(b, (n, k) if b.transposed else (k, n), batch)
    if a.dtype in HALVES:
        left, right = array_cast(left, float32), array_cast(right, float32)
    left, right = (x.swapaxes(1, 2) if o.transposed else x for x, o in ((left, a), (right, b)))
    product = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.float32)
    output = _matrices(c, (m, n), batch)
    output[...] = array_cast(product + array_cast(output, float32) if add else product, dtype_of(output))


def _matrices(operand: Operand, shape: tuple[int, int], batch: int) -> np.ndarray[Any, Any]:
    rows, columns = shape
    assert operand.leading >= rows, "the leading dimension is smaller than the number of rows"
    item = operand.dtype.itemsize
    extent = ((batch - 1) * operand.stride + (columns - 1) * operand.leading + rows) * item
    memory = np.frombuffer((ctypes.c_char * extent).from_address(operand.address), operand.dtype)
    strides = (operand.stride * item, item, operand.leading * item)
    return np.lib.stride_tricks.as_strided(memory, (batch, rows, columns), strides)

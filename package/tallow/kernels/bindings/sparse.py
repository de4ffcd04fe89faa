"""csr_matmul, csr_matmul_transposed, csr_sampled; see src/product/csr.h."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32
from tallow.kernels.bindings.threads import by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
NAMES = {FLOAT32: "f32", FLOAT64: "f64"}
_matmul = {d: function(f"tl_csr_matmul_{n}", None, *[POINTER] * 6, *[SIZE] * 5) for d, n in NAMES.items()}
_sampled = {d: function(f"tl_csr_sampled_{n}", None, *[POINTER] * 6, *[SIZE] * 5) for d, n in NAMES.items()}
_transposed = {
    d: function(f"tl_csr_matmul_transposed_{n}", None, *[POINTER] * 6, *[SIZE] * 6) for d, n in NAMES.items()
}
LINE = 64  # bytes: threads divide columns by cache lines
ENTRY = 2  # multiplications that take as long as the places of an entry


def floats(a: Array, b: Array, *_: object) -> bool:
    """float32 or float64 arrays of one dtype."""
    return a.dtype == b.dtype and a.dtype in NAMES and isinstance(a, np.ndarray) and isinstance(b, np.ndarray)


def _plain(array: Array) -> Array:
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def _places(name: str, values: Array | None, dense: Array, crow: Array, col: Array) -> tuple[Array, Array, Array]:
    """Return the places for C, and where it notes that one of them is wrong."""
    crow, col = np.ascontiguousarray(crow, INT64), np.ascontiguousarray(col, INT64)
    if dense.ndim != 2 or not len(crow) or crow[0] != 0 or crow[-1] != len(col):
        raise ShapeError(f"{name}: {len(crow) - 1} rows of {len(col)} entries, and a matrix {dense.shape}")
    if values is not None and values.shape != col.shape:
        raise ShapeError(f"{name}: {values.shape} values for {col.shape} columns")
    return crow, col, np.zeros(1, INT64)


def _check(name: str, is_bad: Array, size: int) -> None:
    if is_bad[0]:
        raise ShapeError(f"{name}: the rows do not ascend, or a column lies outside of {size}")


@kernel("csr_matmul", BACKEND, accepts=floats)
def csr_matmul(values: Array, dense: Array, crow: Array, col: Array) -> Array:
    """Compute tallow.ops.sparse.csr_matmul_array."""
    crow, col, is_bad = _places("csr_matmul", values, dense, crow, col)
    (m, n), rows, count = dense.shape, len(crow) - 1, len(col)
    y = np.empty((rows, n), dense.dtype)
    if y.size:
        arrays = (y, _plain(values), crow, col, _plain(dense), is_bad)
        by_range(_matmul[dense.dtype], arrays, rows, float(max(count, rows) * (n + ENTRY)), n, count, m)
        _check("csr_matmul", is_bad, m)
    return y


@kernel("csr_matmul_transposed", BACKEND, accepts=floats)
def csr_matmul_transposed(values: Array, dense: Array, crow: Array, col: Array, size: int) -> Array:
    """Compute tallow.ops.sparse.csr_matmul_transposed_array."""
    crow, col, is_bad = _places("csr_matmul_transposed", values, dense, crow, col)
    (rows, n), count = dense.shape, len(col)
    if rows != len(crow) - 1:
        raise ShapeError(f"csr_matmul_transposed: {len(crow) - 1} rows, and a matrix {dense.shape}")
    y = np.zeros((size, n), dense.dtype)
    if y.size:
        arrays = (y, _plain(values), crow, col, _plain(dense), is_bad)
        group = LINE // dense.dtype.itemsize
        by_range(_transposed[dense.dtype], arrays, n, float(count * (n + ENTRY)), rows, n, count, size, group=group)
        _check("csr_matmul_transposed", is_bad, size)
    return y


@kernel("csr_sampled", BACKEND, accepts=floats)
def csr_sampled(g: Array, dense: Array, crow: Array, col: Array) -> Array:
    """Compute tallow.ops.sparse.csr_sampled_array."""
    crow, col, is_bad = _places("csr_sampled", None, dense, crow, col)
    (m, n), rows, count = dense.shape, len(crow) - 1, len(col)
    if g.shape != (rows, n):
        raise ShapeError(f"csr_sampled: matrices {g.shape} and {dense.shape} for {rows} rows")
    y = np.empty(count, dense.dtype)
    if y.size:
        arrays = (y, _plain(g), crow, col, _plain(dense), is_bad)
        by_range(_sampled[dense.dtype], arrays, rows, float(count * (n + ENTRY)), n, count, m)
        _check("csr_sampled", is_bad, m)
    return y

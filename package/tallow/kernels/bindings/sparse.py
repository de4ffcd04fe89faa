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
_matmul = {d: function(f"tl_csr_matmul_{n}", None, *[POINTER] * 5, *[SIZE] * 3) for d, n in NAMES.items()}
_sampled = {d: function(f"tl_csr_sampled_{n}", None, *[POINTER] * 5, *[SIZE] * 3) for d, n in NAMES.items()}
_transposed = {
    d: function(f"tl_csr_matmul_transposed_{n}", None, *[POINTER] * 5, *[SIZE] * 4) for d, n in NAMES.items()
}
LINE = 64  # bytes: threads divide columns by cache lines


def floats(a: Array, b: Array, *_: object) -> bool:
    """float32 or float64 arrays of one dtype."""
    return a.dtype == b.dtype and a.dtype in NAMES and isinstance(a, np.ndarray) and isinstance(b, np.ndarray)


def _plain(array: Array) -> Array:
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def _checked(name: str, per_row: Array | None, dense: Array, crow: Array, col: Array, size: int) -> tuple[Array, Array]:
    """Return the places for C. `size`: the number of columns of the sparse matrix."""
    crow, col = np.ascontiguousarray(crow, INT64), np.ascontiguousarray(col, INT64)
    rows, count = len(crow) - 1, len(col)
    is_ascending = rows >= 0 and crow[0] == 0 and crow[-1] == count and bool((crow[1:] >= crow[:-1]).all())
    if dense.ndim != 2 or not is_ascending or (per_row is not None and per_row.shape != (rows, dense.shape[1])):
        raise ShapeError(f"{name}: {rows} rows of {count} entries, and a matrix {dense.shape}")
    if count and int(col.view(np.uint64).max()) >= size:
        raise ShapeError(f"{name}: a column lies outside of {size}")
    return crow, col


@kernel("csr_matmul", BACKEND, accepts=floats)
def csr_matmul(values: Array, dense: Array, crow: Array, col: Array) -> Array:
    """Compute tallow.ops.sparse.csr_matmul_array."""
    crow, col = _checked("csr_matmul", None, dense, crow, col, len(dense))
    rows, n = len(crow) - 1, dense.shape[1]
    if values.shape != col.shape:
        raise ShapeError(f"csr_matmul: {values.shape} values for {col.shape} columns")
    y = np.empty((rows, n), dense.dtype)
    if y.size:
        arrays = (y, _plain(values), crow, col, _plain(dense))
        by_range(_matmul[dense.dtype], arrays, rows, float(max(len(col), rows) * n), n)
    return y


@kernel("csr_matmul_transposed", BACKEND, accepts=floats)
def csr_matmul_transposed(values: Array, dense: Array, crow: Array, col: Array, size: int) -> Array:
    """Compute tallow.ops.sparse.csr_matmul_transposed_array."""
    n = dense.shape[-1]
    crow, col = _checked("csr_matmul_transposed", dense, dense, crow, col, size)
    if values.shape != col.shape:
        raise ShapeError(f"csr_matmul_transposed: {values.shape} values for {col.shape} columns")
    y = np.zeros((size, n), dense.dtype)
    if y.size:
        arrays = (y, _plain(values), crow, col, _plain(dense))
        group = LINE // dense.dtype.itemsize
        by_range(_transposed[dense.dtype], arrays, n, float(len(col) * n), len(crow) - 1, n, group=group)
    return y


@kernel("csr_sampled", BACKEND, accepts=floats)
def csr_sampled(g: Array, dense: Array, crow: Array, col: Array) -> Array:
    """Compute tallow.ops.sparse.csr_sampled_array."""
    crow, col = _checked("csr_sampled", g, dense, crow, col, len(dense))
    y = np.empty(len(col), dense.dtype)
    if y.size:
        arrays = (y, _plain(g), crow, col, _plain(dense))
        by_range(_sampled[dense.dtype], arrays, len(crow) - 1, float(len(col) * dense.shape[1]), dense.shape[1])
    return y

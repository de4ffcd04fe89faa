"""Products of sparse matrices in compressed rows, and the gradient of a table of which only some rows were used.

A matrix A (rows, m) is three arrays: `crow` (rows + 1,), where each row begins among the entries; `col` (nnz,), the
column of each entry; and `values` (nnz,). An entry may occur more than once: its values are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels import kernel, run
from tallow.ops.accumulate import add_at
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Index, Result, op


@op("", dtypes="same", batched="itself")
def csr_matmul(values: Array, dense: Array, crow: Index, col: Index) -> Result:
    """Return the product of a sparse matrix A (rows, m) and a dense one.

    Shapes:  values (nnz,), dense (m, n), crow (rows + 1,), col (nnz,) -> (rows, n)
    Raises:  ShapeError for other shapes, and a column that is not smaller than m
    """
    if dense.ndim != 2 or values.ndim != 1 or values.shape != col.shape or crow.ndim != 1:
        raise ShapeError(
            f"csr_matmul: {tuple(values.shape)} values in {tuple(col.shape)} columns, dense {tuple(dense.shape)}"
        )
    size = len(dense)

    def backward(g: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
        return (
            lambda: run("csr_sampled", g, dense, crow, col),
            lambda: run("csr_matmul_transposed", values, g, crow, col, size),
        )

    return run("csr_matmul", values, dense, crow, col), backward


@csr_matmul.second(unneeded="size")
def _(g: Derived, *, values: Derived, dense: Derived, crow: Any, col: Derived) -> Gradients:
    of_rows = g[row_of_each(crow, col.numel())]
    return [(of_rows * dense[col]).sum(-1), dense.new_zeros(dense.shape).index_add(0, col, values[:, None] * of_rows)]


def row_of_each(crow: Array, count: int) -> Array:
    """Return the row of each entry.  Shapes: crow (rows + 1,) -> (count,)"""
    xp = array_module(crow)
    return cast(Array, xp.searchsorted(crow, xp.arange(count, dtype=np.int64), side="right") - 1)


@kernel("csr_matmul", "array")
def csr_matmul_array(values: Array, dense: Array, crow: Array, col: Array) -> Array:
    """Return A @ dense."""
    if type(col) is np.ndarray and col.size and int(col.astype(np.int64).view(np.uint64).max()) >= len(dense):
        raise ShapeError(f"csr_matmul: a column lies outside of {len(dense)}")
    product = array_module(dense).zeros((len(crow) - 1, dense.shape[1]), dense.dtype)
    add_at(product, (row_of_each(crow, len(col)),), values[:, None] * dense[col])
    return product


@kernel("csr_matmul_transposed", "array")
def csr_matmul_transposed_array(values: Array, dense: Array, crow: Array, col: Array, size: int) -> Array:
    """Return A.T @ dense.  Shapes: dense (rows, n) -> (size, n)"""
    product = array_module(dense).zeros((size, dense.shape[1]), dense.dtype)
    add_at(product, (col,), values[:, None] * dense[row_of_each(crow, len(col))])
    return product


@kernel("csr_sampled", "array")
def csr_sampled_array(g: Array, dense: Array, crow: Array, col: Array) -> Array:
    """Return the elements of g @ dense.T at the entries.  Shapes: g (rows, n), dense (m, n) -> (nnz,)"""
    return cast(Array, (g[row_of_each(crow, len(col))] * dense[col]).sum(-1))


class RowGradient:
    """The gradient of a table of which an op has used some rows: these rows, and zeros elsewhere.

    It travels to a leaf in the place of an array, and becomes a sparse tensor there.

    Attributes:
        rows: the places of the rows, which may repeat.  Shapes: (N,)
        values: the gradient of each.  Shapes: (N, D)
        shape, dtype: of the table
    """

    __slots__ = ("dtype", "rows", "shape", "values")
    base = None
    as_tensor: ClassVar[Callable[[RowGradient], Any]]  # set by the package of sparse tensors

    def __init__(self, rows: Array, values: Array, shape: tuple[int, ...]) -> None:
        self.rows, self.values, self.shape, self.dtype = rows, values, tuple(shape), values.dtype

    @property
    def size(self) -> int:
        """The number of elements of the table."""
        return math.prod(self.shape)

    def astype(self, dtype: Any, copy: bool = True) -> RowGradient:
        """Return the gradient in another dtype."""
        return RowGradient(self.rows, self.values.astype(dtype, copy=copy), self.shape)

    def dense(self) -> Array:
        """Return the gradient of the whole table."""
        table = array_module(self.values).zeros(self.shape, self.dtype)
        add_at(table, (self.rows,), self.values)
        return table

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Add to an array, and tell where NaN is. No other function of NumPy takes it."""
        if ufunc is np.isnan:
            return array_module(self.values).isnan(self.values)
        if ufunc is not np.add or method != "__call__":
            return NotImplemented
        return ufunc(*(x.dense() if isinstance(x, RowGradient) else x for x in inputs), **kwargs)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, RowGradient):
            return self.dense() + other
        xp = array_module(self.values)
        return RowGradient(
            xp.concatenate((self.rows, other.rows)), xp.concatenate((self.values, other.values)), self.shape
        )

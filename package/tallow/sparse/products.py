"""Products of sparse matrices: with dense ones by compressed rows, and with each other."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError, UnsupportedError
from tallow.functions.segments import segment_reduce
from tallow.ops.memory_format import sparse_coo, sparse_csc, sparse_csr
from tallow.ops.sparse import csr_matmul, row_of_each
from tallow.ops.table import OPS
from tallow.sparse.coordinates import coalesce, convert, pointers_of, sparse_dim, to_coo
from tallow.sparse.shapes import select, transpose
from tallow.sparse.tensor import SparseTensor, implements, make


def rows_of(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the entries of a matrix in the order of its rows, where each row begins, and their columns."""
    if x.layout is sparse_csr:
        return x.entries, *x.places  # type: ignore[return-value]
    if x.layout not in (sparse_coo, sparse_csc):
        x = to_coo(x)
    if x._rows is None:
        if x.layout is sparse_csc:
            pointers, rows = (places.array for places in x.places)
            cols = row_of_each(pointers, len(rows))
        else:
            rows, cols = x.places[0].array
        xp = array_module(rows)
        order = None if bool((rows[1:] >= rows[:-1]).all()) else xp.argsort(rows, kind="stable")
        if order is not None:
            rows, cols = rows[order], cols[order]
        found = wrap(pointers_of(rows, x.shape_[0])), wrap(xp.ascontiguousarray(cols))
        x._rows = *found, None if order is None else wrap(order)
    *places, order = x._rows
    return x.entries if order is None else x.entries[order], *places


def _check(a: Tensor, b: Tensor) -> None:
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[1] != b.shape[0]:
        shapes = " and ".join("x".join(map(str, t.shape)) for t in (a, b))
        raise ShapeError(f"mat1 and mat2 shapes cannot be multiplied ({shapes})")
    for x in (a, b):
        if isinstance(x, SparseTensor) and x.layout is sparse_coo and sparse_dim(x) != 2:
            raise UnsupportedError("a product of sparse tensors with dense dims is not supported", hint="to_dense()")


@implements("mm", "spmm", "mv")
def mm(input: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Return the product of two matrices, of which one or both are sparse; with two, it is sparse.

    Args:
        reduce: "sum", "mean", "amax" or "amin" over the entries of a row times rows of `mat2`, for a matrix in
            compressed rows and a dense one. A row without an entry is zero.

    Shapes:  (n, m), (m, p) or (m,) -> (n, p) or (n,)
    Raises:  ShapeError; UnsupportedError for `reduce` with other layouts
    """
    _check(input, mat2)
    if reduce is not None:
        return _reduced(input, mat2, reduce)
    if not isinstance(input, SparseTensor):
        if not isinstance(mat2, SparseTensor):
            return cast(Tensor, OPS["mm"].call(input, mat2))
        return mm(transpose(mat2, 0, 1), input.t()).t()
    if isinstance(mat2, SparseTensor):
        return _of_two(input, mat2)
    entries, pointers, cols = rows_of(input)
    is_vector = mat2.ndim == 1
    product = csr_matmul.call(entries, mat2[:, None] if is_vector else mat2, pointers, cols)
    return cast(Tensor, product[:, 0] if is_vector else product)


def _reduced(input: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise ArgumentError(f"sparse.mm: reduce={reduce!r} is not one of sum, mean, amax and amin")
    if input.layout is not sparse_csr or isinstance(mat2, SparseTensor):
        raise UnsupportedError("sparse.mm: reduce is for a CSR matrix and a dense one", hint="use to_sparse_csr()")
    if mat2.ndim != 2:
        raise ShapeError("sparse.mm: reduce takes a matrix, not a vector", hint="mat2[:, None]")
    entries, pointers, cols = rows_of(cast(SparseTensor, input))
    result = segment_reduce(entries[:, None] * mat2[cols], reduce, offsets=pointers)
    return result.masked_fill((pointers.diff() == 0)[:, None], 0)


def _of_two(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Return the product of two sparse matrices: each entry of `a` meets the row of `b` of its column."""
    of_a, pointers_a, cols_a = rows_of(a)
    of_b, pointers_b, cols_b = rows_of(b)
    starts, cols = pointers_b.array, cols_a.array
    xp = array_module(cols)
    counts = starts[cols + 1] - starts[cols]
    pairs = xp.repeat(xp.arange(len(cols), dtype=np.int64), counts)
    ends = xp.cumsum(counts)
    partner = starts[cols][pairs] + xp.arange(len(pairs), dtype=np.int64) - (ends - counts)[pairs]
    rows = xp.repeat(xp.arange(a.shape_[0], dtype=np.int64), xp.diff(pointers_a.array))
    places = wrap(xp.stack((rows[pairs], cols_b.array[partner])))
    product = coalesce(make(sparse_coo, (places,), of_a[wrap(pairs)] * of_b[wrap(partner)], (len(a), b.shape_[1])))
    layout = a.layout if a.layout in (sparse_csr, sparse_csc) else sparse_coo
    return cast(SparseTensor, convert(product, layout))


@implements("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the product of matrices, or of a matrix and a vector; of batches if the dims allow."""
    if input.ndim == 1 and other.ndim == 2:
        return mm(transpose(cast(SparseTensor, other), 0, 1), input)
    if input.ndim <= 2 and other.ndim <= 2:
        return mm(input, other)
    return bmm(input, other)


@implements("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two batches of matrices.  Shapes: (b, n, m), (b, m, p) -> (b, n, p)"""
    if input.ndim != 3 or mat2.ndim != 3 or input.shape[0] != mat2.shape[0]:
        raise ShapeError(f"bmm: batches {tuple(input.shape)} and {tuple(mat2.shape)}")
    pairs = ((_matrix(input, i), _matrix(mat2, i)) for i in range(input.shape[0]))
    return cast(Tensor, OPS["stack"].call([mm(a, b) for a, b in pairs], 0))


def _matrix(x: Tensor, i: int) -> Tensor:
    return select(to_coo(x), 0, i) if isinstance(x, SparseTensor) else x[i]


@implements("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (mat1 @ mat2)."""
    product = mm(mat1, mat2)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


@implements("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input @ weight.T + bias."""
    other = transpose(weight, 0, 1) if isinstance(weight, SparseTensor) else weight.t()
    product = mm(input, other)
    return product if bias is None else product + bias


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0
) -> SparseTensor:
    """Return beta * input + alpha * (mat1 @ mat2) at the places of input, a matrix with compressed rows."""
    if not isinstance(input, SparseTensor) or input.layout is not sparse_csr:
        raise UnsupportedError("sampled_addmm: input must have layout sparse_csr", hint="to_sparse_csr()")
    x = to_coo(input)
    rows, cols = x.places[0][0], x.places[0][1]
    products = (mat1[rows] * mat2.t()[cols]).sum(-1)
    return input.like(beta * input.entries + alpha * products)

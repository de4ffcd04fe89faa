"""Lookup of table rows by index."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError, UnsupportedError
from tallow.kernels import kernel, run
from tallow.ops.accumulate import add_at
from tallow.ops.gather import check_index_dtype
from tallow.ops.indexing import check_places
from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.sparse import RowGradient
from tallow.ops.table import Array, Index, Result, op

INT64 = np.dtype(np.int64)


def check_indices(name: str, indices: Array, rows: int) -> None:
    """Raise DtypeError, and on the CPU DimensionError for an index outside of 0 .. rows - 1."""
    if indices.dtype is not INT64:
        check_index_dtype(indices, name)
    check_places(indices, rows, 0, name, lowest=0)


def check_padding_idx(name: str, padding_idx: int | None, rows: int) -> int | None:
    """Return `padding_idx` in 0 .. rows - 1, or None."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise ArgumentError(f"{name}: padding_idx={padding_idx} lies outside the {rows} rows of the table")
    return padding_idx % rows


def _looked_up(input: Index, weight: Array, padding_idx: int | None) -> Array:
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must be (num_embeddings, embedding_dim), not {tuple(weight.shape)}")
    rows = len(weight)
    check_indices("embedding", input, rows)
    if padding_idx is not None:
        check_padding_idx("embedding", padding_idx, rows)
    return run("take_rows", weight, input)


@op("", dtypes="keep", value=_looked_up, batched="itself")
def embedding(
    input: Index,
    weight: Array,
    padding_idx: int | None = None,
    *,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Result:
    """Return y = weight[input]. The row `padding_idx` gets no gradient.

    Args:    scale_grad_by_freq: divide the gradient of each row by the number of its occurrences in input
             sparse: the gradient has the rows that were used only
    Shapes:  input (*) of integers, weight (V, D) -> (*, D)
    Raises:  on the CPU, DimensionError for an index outside the table; undefined on other devices
    """
    value = _looked_up(input, weight, padding_idx)
    rows, width = weight.shape
    padding_idx = check_padding_idx("embedding", padding_idx, rows)

    def backward(g: Array) -> tuple[Array]:
        flat = input.reshape(-1)
        if sparse:
            return (_gradient_of_rows(flat, g.reshape(flat.size, width), (rows, width), padding_idx),)
        table = run("add_rows", g.reshape(flat.size, width), flat, rows, padding_idx)
        if scale_grad_by_freq:
            uses = array_module(g).zeros(rows, np.int64)
            add_at(uses, (flat,), array_module(g).ones(flat.size, np.int64))
            table /= uses.clip(1, None)[:, None].astype(g.dtype)
        return (table,)

    return value, backward


def _gradient_of_rows(flat: Array, g: Array, shape: tuple[int, int], padding_idx: int | None) -> RowGradient:
    if padding_idx is not None:
        kept = flat != padding_idx
        flat, g = flat[kept], g[kept]
    return RowGradient(flat.astype(INT64), g, shape)


@embedding.second(unneeded="rows width sparse")
def _(g: Derived, *, input: Derived, weight: Unread, padding_idx: int | None, scale_grad_by_freq: bool) -> Gradients:
    if scale_grad_by_freq:
        raise UnsupportedError("embedding: with scale_grad_by_freq=True its gradient cannot be differentiated")
    if padding_idx is not None:
        g = g.masked_fill((input == padding_idx).unsqueeze(-1), 0)
    return [weight.detach().index_add(0, input.flatten(), g.reshape(-1, g.shape[-1]))]


@kernel("take_rows", "array")
def take_rows_array(table: Array, index: Index) -> Array:
    """Return table[index].  Shapes: table (V, D), index (*) -> (*, D)"""
    rows: Array = table.take(index, 0) if type(table) is np.ndarray else table[index]  # a third of the time
    return rows


@kernel("add_rows", "array")
def add_rows_array(g: Array, index: Array, rows: int, padding_idx: int | None) -> Array:
    """Return zeros (rows, D) with row n of g added to row index[n], except for the row `padding_idx`.

    Shapes:  g (N, D), index (N,) -> (rows, D)
    """
    table = array_module(g).zeros((rows, g.shape[1]), g.dtype)
    add_at(table, (index,), g)
    if padding_idx is not None:
        table[padding_idx] = 0
    return table

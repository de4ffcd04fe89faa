"""Looking up rows of a table by index."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.accumulate import add_at
from tallow.ops.gather import check_index_dtype
from tallow.ops.indexing import check_places
from tallow.ops.table import Array, Index, Result, op


def check_indices(name: str, indices: Array, rows: int) -> None:
    """Raises: DtypeError, and on the CPU DimensionError for an index outside of 0 .. rows - 1."""
    check_index_dtype(indices, name)
    check_places(indices, rows, 0, name, lowest=0)


def check_padding_idx(name: str, padding_idx: int | None, rows: int) -> int | None:
    """`padding_idx` in 0 .. rows - 1, or None."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise ArgumentError(f"{name}: padding_idx={padding_idx} lies outside the {rows} rows of the table")
    return padding_idx % rows


@op("", dtypes="keep")
def embedding(
    input: Index, weight: Array, padding_idx: int | None = None, *, scale_grad_by_freq: bool = False
) -> Result:
    """y = weight[input]. The row `padding_idx` gets no gradient.

    Args:    scale_grad_by_freq: divide the gradient of each row by the number of its uses
    Shapes:  input (*) of integers, weight (V, D) -> (*, D)
    Raises:  DimensionError for an index outside the table
    """
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must be (num_embeddings, embedding_dim), not {tuple(weight.shape)}")
    rows, width = weight.shape
    check_indices("embedding", input, rows)
    padding_idx = check_padding_idx("embedding", padding_idx, rows)

    def backward(g: Array) -> tuple[Array]:
        xp = array_module(g)
        table = xp.zeros((rows, width), g.dtype)
        flat = input.reshape(-1)
        add_at(table, (flat,), g.reshape(flat.size, width))
        if scale_grad_by_freq:
            table /= xp.maximum(xp.bincount(flat.astype(np.intp), minlength=rows), 1)[:, None].astype(g.dtype)
        if padding_idx is not None:
            table[padding_idx] = 0
        return (table,)

    return weight[input], backward

"""Lookup of several table rows at once, reduced to their sum, mean or maximum."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.kernels import run
from tallow.ops.adaptive_pooling import argmax_of_windows
from tallow.ops.embedding import check_indices, check_padding_idx
from tallow.ops.sparse import RowGradient
from tallow.ops.table import Array, Index, Result, op


@op("")
def embedding_bag(
    weight: Array,
    per_sample_weights: Array | None,
    input: Index,
    bags: Index,
    *,
    count: int,
    mode: str,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Result:
    """Gather the rows weight[input[n]] into `count` bags, and reduce each bag. Bag numbers do not decrease.

    Args:    mode: "sum", with per_sample_weights as factors if given; "mean"; "max"
    Shapes:  weight (V, D), input, bags, per_sample_weights (n) -> (count, D); an empty bag gives zeros
    """
    table_rows, width = weight.shape
    check_indices("embedding_bag", input, table_rows)
    padding_idx = check_padding_idx("embedding_bag", padding_idx, table_rows)
    xp = array_module(weight)
    if padding_idx is not None:
        selected = input != padding_idx
        input, bags = input[selected], bags[selected]
    else:
        selected = slice(None)
    sizes = xp.bincount(bags.astype(np.intp), minlength=count)
    rows = run("take_rows", weight, input)

    def into_table(d_rows: Array) -> Array:
        if scale_grad_by_freq:  # each row by its own count; PyTorch's CPU code divides all rows by one row's
            d_rows = d_rows / xp.bincount(input.astype(np.intp), minlength=table_rows)[input][:, None].astype(
                d_rows.dtype
            )
        if sparse:
            return RowGradient(input.astype(np.int64), d_rows, weight.shape)
        return run("add_rows", d_rows, input, table_rows, None)

    if mode == "max":
        y, first = _segment_max(rows, sizes)

        def max_backward(g: Array) -> tuple[object, ...]:
            """Pass the gradient of each maximum to the row that has it."""
            d_rows = xp.zeros((len(input), width), g.dtype)
            bag, column = xp.nonzero(xp.broadcast_to((sizes > 0)[:, None], g.shape))
            d_rows[first[bag, column], column] = g[bag, column]
            return into_table(d_rows), None

        return y, max_backward

    factors = None if per_sample_weights is None else per_sample_weights[selected]
    y = run("add_rows", rows if factors is None else rows * factors[:, None], bags, count, None)
    share = (1 / sizes.clip(1, None)).astype(weight.dtype)[:, None] if mode == "mean" else 1
    y *= share
    weight_count = None if per_sample_weights is None else len(per_sample_weights)

    def backward(g: Array) -> tuple[object, ...]:
        def d_factors() -> Array:
            d = xp.zeros(weight_count, g.dtype)
            d[selected] = (g[bags] * weight[input]).sum(axis=1)
            return d

        def d_weight() -> Array:
            d_rows = run("take_rows", g * share, bags)
            return into_table(d_rows if factors is None else d_rows * factors[:, None])

        return d_weight, None if weight_count is None else d_factors

    return y, backward


def _segment_max(rows: Array, sizes: Array) -> tuple[Array, Array]:
    """Return the maxima of each bag, zero for an empty bag, and the first row that has each maximum, (count, D)."""
    xp = array_module(rows)
    stop = xp.cumsum(sizes)
    if not len(rows):
        return xp.zeros((len(sizes), rows.shape[1]), rows.dtype), xp.zeros((len(sizes), rows.shape[1]), np.int64)
    start = xp.minimum(stop - sizes, len(rows) - 1)
    y, first = argmax_of_windows(rows, -2, start, xp.maximum(stop, start + 1))
    return xp.where((sizes > 0)[:, None], y, 0), first

"""Writing to the positions given by arrays of indices."""

from __future__ import annotations

from operator import setitem
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import HALVES, cast, dtype_of, widen
from tallow.ops.accumulate import add_at
from tallow.ops.filling import put_number
from tallow.ops.indexing import full_index
from tallow.ops.table import Array, Index, Result, op


@op(dtypes="keep", batched="itself")
def index_put(input: Array, indices: Index, values: Array, accumulate: bool = False) -> Result:
    """Return a copy of `input` with `values`, broadcast, written to input[indices], or added to it if `accumulate`.

    For repeated positions without `accumulate` the last value is kept; on a GPU, any of them.

    Shapes:  indices: one array or None for each dim from the first; values: broadcasts to input[indices]
    """
    index = full_index(indices)
    result = input.copy(order="K")
    put_into(result, index, values, accumulate)

    def backward(g: Array) -> tuple[Any, Any]:
        return g[...] if accumulate else lambda: _zero_at(g, index), lambda: g[index]

    return result, backward


index_put.moves()


def put_into(target: Array, index: tuple[Any, ...], values: Array, accumulate: bool) -> None:
    """Set target[index] to `values`, or add them, accumulating at repeated positions, in place."""
    if not accumulate:
        (put_number if not values.ndim else setitem)(target, index, values)
    elif target.dtype in HALVES:  # sum in float32, round once
        sums = widen(target)
        add_at(sums, index, widen(values))
        target[...] = cast(sums, dtype_of(target))
    else:
        add_at(target, index, values)


def _zero_at(g: Array, index: tuple[Any, ...]) -> Array:
    d_input = array_module(g).array(g)  # g may be a NumPy scalar
    put_number(d_input, index, 0)
    return d_input

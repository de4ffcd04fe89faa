"""Writing to the places that arrays of indices name."""

from __future__ import annotations

from operator import setitem
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import HALVES, cast, dtype_of, widen
from tallow.ops.accumulate import add_at
from tallow.ops.filling import put_number
from tallow.ops.indexing import full_index
from tallow.ops.table import Array, Index, Result, op


@op(dtypes="keep")
def index_put(input: Array, indices: Index, values: Array, accumulate: bool = False) -> Result:
    """A copy of the input where input[indices] is `values`, broadcast; or has `values` added to it.

    With repeated places and no `accumulate`, the last of their values stays; on a GPU, any of them.

    Shapes:  indices: one array or None for each dim from the first; values: broadcasts to input[indices]
    """
    index = full_index(indices)
    result = input.copy(order="K")
    put_into(result, index, values, accumulate)

    def backward(g: Array) -> tuple[Any, Any]:
        return g[...] if accumulate else lambda: _zeroed(g, index), lambda: g[index]

    return result, backward


def put_into(target: Array, index: tuple[Any, ...], values: Array, accumulate: bool) -> None:
    """target[index] = values, or += with repeated places adding up, in place."""
    if not accumulate:
        (put_number if not values.ndim else setitem)(target, index, values)
    elif target.dtype in HALVES:  # sums in float32, rounded once
        sums = widen(target)
        add_at(sums, index, widen(values))
        target[...] = cast(sums, dtype_of(target))
    else:
        add_at(target, index, values)


def _zeroed(g: Array, index: tuple[Any, ...]) -> Array:
    kept = array_module(g).array(g)  # g may be a number of NumPy's
    put_number(kept, index, 0)
    return kept

"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

from tallow.ops.along import axis_of
from tallow.ops.reduction import widened
from tallow.ops.table import Array, Result, op


def reversed_sum(g: Array, axis: int) -> Array:
    """Σ over each element and those after it: the gradient of a running sum."""
    reverse = (slice(None),) * axis + (slice(None, None, -1),)
    return g[reverse].cumsum(axis=axis)[reverse]


@op("tl Tensor Tensor_")
def cumsum(input: Array, dim: int, *, dtype: object = None) -> Result:
    """y_i = Σ_{j ≤ i} input_j along `dim`.

    Dtypes:  integers and bool are summed in int64; `dtype` converts the input first
    """
    x, axis = axis_of(input, dim, "cumsum")
    given, shape = input.shape, x.shape
    y = x.cumsum(axis=axis, dtype=widened(input, dtype)).reshape(given)
    return y, lambda g: (reversed_sum(g.reshape(shape), axis).reshape(given),)

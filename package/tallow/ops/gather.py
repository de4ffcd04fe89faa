"""Reading the places that an index names."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.errors import DimensionError
from tallow.ops.accumulate import add_at
from tallow.ops.dims import normalize_dim
from tallow.ops.indexing import check_index_dtype, check_places
from tallow.ops.table import Array, Index, Result, op


@op(dtypes="keep")
def index_select(input: Array, dim: int, index: Index) -> Result:
    """The slices along `dim` that `index` names, in its order.

    Shapes:  input (..., N, ...), index (M,) -> (..., M, ...)
    """
    dim = normalize_dim(dim, input.ndim, "index_select")
    check_index_dtype(index, "index_select")
    if index.ndim > 1:
        raise DimensionError(f"index_select: index must be one-dimensional, got shape {list(index.shape)}")
    shape = input.shape
    check_places(index, shape[dim] if shape else 1, dim, "index_select", lowest=0)
    if not shape:
        return input.reshape(1)[index].reshape(()), lambda g: (g[...],)
    places = index.reshape(-1)

    def backward(g: Array) -> tuple[Array]:
        whole = array_module(g).zeros(shape, g.dtype)
        add_at(whole.swapaxes(0, dim), (places,), g.swapaxes(0, dim))
        return (whole,)

    return input[(slice(None),) * dim + (places,)], backward

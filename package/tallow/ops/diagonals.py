"""Diagonals and triangles of matrices."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.errors import ShapeError
from tallow.ops.dims import normalize_dim
from tallow.ops.memory_format import standard_order
from tallow.ops.selection import select
from tallow.ops.table import Array, Result, op


def _plane(ndim: int, dim1: int, dim2: int, name: str) -> tuple[int, int]:
    first, second = normalize_dim(dim1, ndim, name), normalize_dim(dim2, ndim, name)
    if first == second:
        raise ShapeError(f"{name}: diagonal dimensions cannot be identical: {dim1}, {dim2}")
    return first, second


def diagonal_view(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Return NumPy's diagonal, which shares memory but is marked as not writeable."""
    view = input.diagonal(offset, dim1, dim2)
    if getattr(input.flags, "writeable", False):
        view.flags.writeable = True
    return view


@op(dtypes="keep", view=True, batched="dim")
def diagonal(input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Result:
    """Return a view of the elements whose indices along `dim2` and `dim1` differ by `offset`; it becomes the last dim.

    Shapes:  input (..., N, M) for dim1=-2, dim2=-1 -> (..., length of the diagonal)
    """
    dim1, dim2 = _plane(input.ndim, dim1, dim2, "diagonal")
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        dx = array_module(g).zeros(shape, g.dtype)
        diagonal_view(dx, offset, dim1, dim2)[...] = g
        return (dx,)

    return diagonal_view(input, offset, dim1, dim2), backward


diagonal.linear(lambda x, *, offset, dim1, dim2: x.diagonal(offset, dim1, dim2), unneeded="shape")


@op(dtypes="keep", batched="itself")
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Result:
    """Return zeros with the last dim of the input on a diagonal of the new dims `dim1` and `dim2`.

    Shapes:  input (..., N) -> (..., N + |offset|, N + |offset|) for dim1=-2, dim2=-1
    """
    dim1, dim2 = _plane(input.ndim + 1, dim1, dim2, "diag_embed")
    shape = list(input.shape[:-1])
    for d in sorted((dim1, dim2)):
        shape.insert(d, input.shape[-1] + abs(offset))
    value = array_module(input).zeros(shape, input.dtype)
    diagonal_view(value, offset, dim1, dim2)[...] = input
    return value, lambda g: (diagonal_view(g, offset, dim1, dim2)[...],)


diag_embed.moves()


def _check_matrix(input: Array, name: str) -> None:
    if input.ndim < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions, got {input.ndim}")


@op("tl Tensor Tensor_", dtypes="keep", batched="leading")
def tril(input: Array, diagonal: int = 0) -> Result:
    """Return the elements on and below a diagonal of each matrix in the last two dims; zero elsewhere."""
    _check_matrix(input, "tril")
    return standard_order(_lower(input, diagonal)), lambda g: (_lower(g, diagonal),)


tril.piecewise()


def _lower(x: Array, diagonal: int) -> Array:
    xp = array_module(x)
    return select(xp.tri(*x.shape[-2:], diagonal, dtype=bool), x, xp.zeros((), x.dtype))


@op("tl Tensor Tensor_", dtypes="keep", batched="leading")
def triu(input: Array, diagonal: int = 0) -> Result:
    """Return the elements on and above a diagonal of each matrix in the last two dims; zero elsewhere."""
    _check_matrix(input, "triu")
    return standard_order(_upper(input, diagonal)), lambda g: (_upper(g, diagonal),)


triu.piecewise()


def _upper(x: Array, diagonal: int) -> Array:
    xp = array_module(x)
    return select(xp.tri(*x.shape[-2:], diagonal - 1, dtype=bool), xp.zeros((), x.dtype), x)

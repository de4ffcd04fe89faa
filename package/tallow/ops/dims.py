"""Checks and normalization of dims."""

from __future__ import annotations

from collections.abc import Iterable

from tallow.errors import DimensionError, ShapeError


def normalize_dim(dim: int, ndim: int, name: str) -> int:
    """Return a dim in 0 .. ndim - 1. A zero-dim tensor accepts 0 and -1, as in PyTorch.

    Raises: DimensionError.
    """
    if -ndim <= dim < ndim:
        return dim % ndim
    if not ndim and dim in (0, -1):
        return 0
    n = max(ndim, 1)
    raise DimensionError(f"{name}: dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def normalize_dims(dim: int | Iterable[int] | None, ndim: int, name: str) -> tuple[int, ...]:
    """Return several dims, each once; None and an empty list mean all.

    Raises: DimensionError, and ShapeError for a repeated dim.
    """
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int):
        return (normalize_dim(dim, ndim, name),)
    dims = tuple(normalize_dim(d, ndim, name) for d in dim)
    if len(set(dims)) != len(dims):
        raise ShapeError(
            f"{name}: dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    return dims if dims else tuple(range(ndim))

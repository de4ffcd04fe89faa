"""Read integers, and check and normalize dims."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, SupportsIndex

from tallow.errors import ArgumentTypeError, DimensionError, ShapeError

IntOrInts = SupportsIndex | Iterable[SupportsIndex]


def as_int(value: Any, name: str) -> int:
    """Return an integer of Python, of NumPy, of a 0-d tensor or of a class with `__index__` as one of Python.

    Raises: ArgumentTypeError for anything else, a bool too.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise ArgumentTypeError(f"{name}: expected an integer, got the bool {value}")
    if isinstance(value, int):  # such as a size that `tallow.export` follows
        return value
    try:
        return index(value)
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected an integer, got {value!r:.80}") from None


def as_ints(values: Any, name: str) -> tuple[int, ...]:
    """Return integers of Python for one integer or several, each as in `as_int`.

    Raises: ArgumentTypeError for anything else.
    """
    if type(values) is not tuple and is_int(values):
        return (as_int(values, name),)
    try:
        return tuple([value if type(value) is int else as_int(value, name) for value in values])
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected an integer or a list of integers, got {values!r:.80}") from None


def is_int(value: Any) -> bool:
    """Return whether a value is one integer, as `as_int` reads it, and not a sequence, a vector or a float."""
    if type(value) is int:
        return True
    if not hasattr(type(value), "__index__"):
        return False
    if not hasattr(value, "ndim"):
        return True
    try:  # a tensor, an array or a number of NumPy
        return not value.ndim and index(value) is not None
    except TypeError:
        return False


def _as_dim(value: Any, name: str) -> int:
    if isinstance(value, bool):
        raise ArgumentTypeError(f"{name}: dim must be an integer, not a bool")
    return as_int(value, name)


def _as_list(dims: Any, name: str) -> list[Any]:
    try:
        return list(dims)
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected an integer or a list of integers, got {dims!r:.80}") from None


def normalize_dim(dim: SupportsIndex, ndim: int, name: str) -> int:
    """Return a dim in 0 .. ndim - 1. A zero-dim tensor accepts 0 and -1, as in PyTorch.

    Raises: DimensionError.
    """
    if type(dim) is not int:
        dim = _as_dim(dim, name)
    if -ndim <= dim < ndim:
        return dim % ndim
    if not ndim and dim in (0, -1):
        return 0
    n = max(ndim, 1)
    raise DimensionError(f"{name}: dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def normalize_dims(dim: IntOrInts | None, ndim: int, name: str) -> tuple[int, ...]:
    """Return several dims, each once; None and an empty list mean all.

    Raises: DimensionError, and ShapeError for a repeated dim.
    """
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int:
        return (normalize_dim(dim, ndim, name),)
    listed: list[Any] = [dim] if is_int(dim) else _as_list(dim, name)
    dims = tuple([normalize_dim(d, ndim, name) for d in listed])
    if len(set(dims)) != len(dims):
        raise ShapeError(
            f"{name}: dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    return dims if dims else tuple(range(ndim))

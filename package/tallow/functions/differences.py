"""Differences of neighbours, and integrals over samples."""

from __future__ import annotations

from tallow.apply import apply
from tallow.dtypes import bool as bool_
from tallow.errors import ShapeError
from tallow.offer import offer
from tallow.ops.table import OPS, Scalar
from tallow.tensor import Tensor


@offer("tl Tensor")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times; of booleans, whether they differ.

    Args:
        prepend, append: joined to the input along `dim` first.

    Raises:  ShapeError, DimensionError
    """
    if input.ndim == 0:
        raise ShapeError("diff: expected a tensor of at least one dimension")
    if n < 0:
        raise ShapeError(f"diff: n={n} must not be negative")
    parts = [part for part in (prepend, input, append) if part is not None]
    x: Tensor = input if len(parts) == 1 else apply(OPS["cat"], parts, dim)
    size = x.size(dim)
    for length in range(size, max(size - n, 0), -1):
        later, earlier = x.narrow(dim, 1, length - 1), x.narrow(dim, 0, length - 1)
        x = later ^ earlier if x.dtype is bool_ else later - earlier
    return x


def _strips(y: Tensor, x: Tensor | None, dx: Scalar, dim: int, name: str) -> Tensor:
    """The area under each pair of neighbours along `dim`."""
    if y.ndim == 0 or y.size(dim) == 0:
        raise ShapeError(f"{name}: expected at least one sample along dim {dim}, got shape {tuple(y.shape)}")
    n = y.size(dim)
    heights = (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)) / 2
    if x is None:
        return heights * dx
    if x.ndim == 1:
        if len(x) != n:
            raise ShapeError(f"{name}: {len(x)} positions for {n} samples along dim {dim}")
        return heights * diff(x).reshape([-1 if i == dim % y.ndim else 1 for i in range(y.ndim)])
    return heights * diff(x, dim=dim)


@offer("tl", "trapz")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """The integral of samples by the trapezoidal rule, at positions `x` or `dx` apart."""
    return _strips(y, x, dx, dim, "trapezoid").sum(dim)


@offer("tl")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """The integral up to each sample but the first, by the trapezoidal rule."""
    return _strips(y, x, dx, dim, "cumulative_trapezoid").cumsum(dim)

"""Differences of neighbouring elements, and integrals and derivatives of samples."""

from __future__ import annotations

from typing import Any

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.short_runtime import ABSENT
from tallow.core.tensor import Tensor
from tallow.dtypes import bool as bool_
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.dims import as_ints, normalize_dim
from tallow.ops.joining import cat
from tallow.ops.table import Scalar


@public("tl Tensor", checked=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Compute the differences of neighbours along `dim`, `n` times; for booleans, whether neighbours differ.

    Args:
        prepend, append: tensors to join to the input along `dim` first.

    Raises:  ShapeError, DimensionError
    """
    if input.ndim == 0:
        raise ShapeError("diff: expected a tensor of at least one dimension")
    if n < 0:
        raise ShapeError(f"diff: n={n} must not be negative")
    if n == 0:
        return input
    parts = [part for part in (prepend, input, append) if part is not None]
    if any(part.ndim != input.ndim for part in parts):
        raise ShapeError(f"diff: prepend and append must have {input.ndim} dims, like the input")
    x: Tensor = input if len(parts) == 1 else apply(cat, parts, dim)
    size = x.size(dim)
    for length in range(size, max(size - n, 0), -1):
        later, earlier = x.narrow(dim, 1, length - 1), x.narrow(dim, 0, length - 1)
        x = later ^ earlier if x.dtype is bool_ else later - earlier
    return x


def _strips(y: Tensor, x: Tensor, dx: Scalar, dim: int, name: str) -> Tensor:
    """Return the area under each pair of neighbours along `dim`."""
    if y.ndim == 0:
        raise ShapeError(f"{name}: expected a tensor of at least one dimension")
    n = y.size(dim)
    if n == 0:
        return y
    heights = (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)) / 2
    if x is ABSENT:
        return heights * dx
    if x.ndim == 1:
        if len(x) != n:
            raise ShapeError(f"{name}: {len(x)} positions for {n} samples along dim {dim}")
        return heights * diff(x).reshape([-1 if i == dim % y.ndim else 1 for i in range(y.ndim)])
    if x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + x.shape)
    return heights * diff(x, dim=dim % y.ndim)


@public("tl", "trapz", checked=True)
def trapezoid(y: Tensor, x: Tensor = ABSENT, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """Integrate samples by the trapezoidal rule, at positions `x` or at distance `dx`."""
    return _strips(y, x, dx, dim, "trapezoid").sum(dim % y.ndim)


@public("tl", checked=True)
def cumulative_trapezoid(y: Tensor, x: Tensor = ABSENT, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """Integrate up to each sample but the first, by the trapezoidal rule."""
    return _strips(y, x, dx, dim, "cumulative_trapezoid").cumsum(dim % y.ndim)


@public("tl", checked=True)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Estimate the derivatives of samples along each of `dim`, or along all dims, by second-order differences.

    Args:
        spacing: the distance of neighbours, one for all dims or one each, 1 if None; or the positions along each dim,
            as vectors.
        edge_order: order of the differences at both ends, 1 or 2.

    Raises:  ShapeError for too few samples, ArgumentError for another edge_order or number of spacings
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    all_dims = range(input.ndim) if dim is None else as_ints(dim, "gradient")
    dims = [normalize_dim(d, input.ndim, "gradient") for d in all_dims]
    if len(set(dims)) < len(dims):
        raise ShapeError(f"gradient: a dim appears several times in {list(all_dims)}")
    if spacing is None:
        spacing = 1
    spacings = list(spacing) if isinstance(spacing, list | tuple) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise ArgumentError(f"gradient: {len(spacings)} spacings for {len(dims)} dims")
    if isinstance(spacing, list | tuple) and any(isinstance(h, Tensor) and h.ndim != 1 for h in spacing):
        raise ShapeError("gradient: each tensor of spacing must be a vector, the positions along one dim")
    return tuple(_gradient_along(input, d, h, edge_order) for d, h in zip(dims, spacings, strict=True))


def _gradient_along(x: Tensor, dim: int, spacing: Tensor | float, edge_order: int) -> Tensor:
    n = x.size(dim)
    if n <= edge_order:
        raise ShapeError(f"gradient: needs at least {edge_order + 1} samples along dim {dim}, got {n}")
    if isinstance(spacing, Tensor) and spacing.ndim and len(spacing) != n:
        raise ShapeError(f"gradient: {len(spacing)} positions for {n} samples along dim {dim}")
    steps = diff(spacing) if isinstance(spacing, Tensor) and spacing.ndim else x.new_ones(n - 1) * spacing
    column = [-1 if i == dim % x.ndim else 1 for i in range(x.ndim)]
    slopes = diff(x, dim=dim) / steps.reshape(column)

    def weighted(near: Tensor, far: Tensor, h: Tensor, k: Tensor) -> Tensor:
        """Return the slope where two intervals of lengths h and k meet, from the slopes within them."""
        return (near * k + far * h) / (h + k)

    h, k = steps[:-1].reshape(column), steps[1:].reshape(column)
    left, right = slopes.narrow(dim, 0, n - 2), slopes.narrow(dim, 1, n - 2)
    middle = weighted(left, right, h, k)
    first, last = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if edge_order == 2:  # the parabola through the outermost three
        first = 2 * first - middle.narrow(dim, 0, 1)
        last = 2 * last - middle.narrow(dim, n - 3, 1)
    return apply(cat, [first, middle, last], dim)

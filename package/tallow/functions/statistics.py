"""Variances, with all signatures of PyTorch, covariances, and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow import return_types
from tallow.core.apply import apply
from tallow.core.creation import linspace
from tallow.core.public_api import public
from tallow.core.short_runtime import ABSENT
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import get_default_dtype
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, NumericError, ShapeError
from tallow.ops.checks import expect_float
from tallow.ops.complex_numbers import complex_of
from tallow.ops.counting import bincount
from tallow.ops.moments import std as std_op
from tallow.ops.moments import var as var_op
from tallow.ops.norm import linalg_vector_norm
from tallow.ops.reduction import Dims, aminmax, mean
from tallow.ops.searching import searchsorted
from tallow.ops.table import Scalar


def _correction(name: str, dim: Any, unbiased: bool, correction: Scalar | None) -> tuple[Dims, Scalar]:
    """Return `dim` and the correction for calls by PyTorch's older and newer signatures."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not ABSENT and not isinstance(unbiased, bool):
        hint = f"{name}(x, dim, correction={unbiased})"
        raise ArgumentTypeError(f"{name}: unbiased is True or False, not {unbiased!r}", hint=hint)
    if unbiased is not ABSENT and correction is not None:
        raise ArgumentTypeError(f"{name}: unbiased and correction cannot be combined", hint="pass only correction")
    return dim, (1 if unbiased is not False else 0) if correction is None else correction


@public("tl Tensor")
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool = ABSENT,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> Tensor:
    """Compute Σ (x - mean)² / max(0, n - correction) over `dim`; `unbiased=True` is correction=1, the default.

    Dtypes:  any float
    Raises:  DtypeError
    """
    return apply(var_op, input, *_correction("var", dim, unbiased, correction), keepdim)


@public("tl Tensor")
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool = ABSENT,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> Tensor:
    """Compute the square root of `var`.

    Dtypes:  any float
    Raises:  DtypeError
    """
    return apply(std_op, input, *_correction("std", dim, unbiased, correction), keepdim)


@public("tl")
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool = ABSENT,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `var` and `mean`."""
    dim, correction = _correction("var_mean", dim, unbiased, correction)
    return apply(var_op, input, dim, correction, keepdim), apply(mean, input, dim, keepdim)


@public("tl")
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool = ABSENT,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `std` and `mean`."""
    dim, correction = _correction("std_mean", dim, unbiased, correction)
    return apply(std_op, input, dim, correction, keepdim), apply(mean, input, dim, keepdim)


@public("tl Tensor", checked=True)
def dist(input: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """Compute the p-norm of the difference over all elements."""
    return apply(linalg_vector_norm, input - other, p)


@public("tl Tensor", checked=True)
@recorded_whole
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Compute the covariances of variables, one per row, with an observation in each column.

    Args:
        fweights: the number of times each observation counts.
        aweights: how much each observation counts.

    Shapes:  (N, T) -> (N, N); (T) or (1, T) -> ()
    Raises:  ShapeError, DtypeError, NumericError for weights that are negative or sum to zero
    """
    if input.ndim > 2:
        raise ShapeError(f"cov: expected a matrix or a vector, got shape {tuple(input.shape)}")
    _check_weights(input, fweights, aweights)
    x = input.reshape(1, input.numel()) if input.ndim < 2 else input
    if x.dtype.category < 2:
        x = x.to(get_default_dtype())
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is None:
        n: Any = x.shape[1]
        centred = scaled = x - x.mean(1, True)
        total: Any = n - correction
    else:
        weights = weights.to(x.dtype)
        n = weights.sum()
        if n == 0:
            raise NumericError("cov: the weights sum to zero")
        centred = x - (x * weights).sum(1, True) / n
        scaled = centred * weights
        total = n - correction * (1 if aweights is None else (weights * aweights).sum() / n)
        total = total.real
    value = scaled @ centred.mH / (total.clamp(min=0) if isinstance(total, Tensor) else max(total, 0))
    return value.reshape(()) if value.numel() == 1 else value


def _check_weights(input: Tensor, fweights: Tensor | None, aweights: Tensor | None) -> None:
    observations = input.numel() if input.ndim < 2 else input.shape[1]
    for name, weights, is_integer in (("fweights", fweights, True), ("aweights", aweights, False)):
        if weights is None:
            continue
        if weights.ndim > 1 or weights.numel() != observations:
            raise ShapeError(f"cov: {name} must have one element for each of {observations} observations")
        if weights.is_floating_point() is is_integer:
            raise DtypeError(f"cov: {name} must be {'integers' if is_integer else 'floats'}, not {weights.dtype}")
        if (weights < 0).any():
            raise NumericError(f"cov: {name} cannot be negative")


@public("tl Tensor")
def corrcoef(input: Tensor) -> Tensor:
    """Compute the correlations of variables, one per row: covariance over the product of standard deviations.

    Shapes:  (N, T) -> (N, N); (T) or (1, T) -> ()
    """
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = covariance.diagonal().real.sqrt()
    value = covariance / deviation.unsqueeze(1) / deviation
    if value.is_complex():
        return apply(complex_of, value.real.clamp(-1, 1), value.imag.clamp(-1, 1))
    return value.clamp(-1, 1)


@public("tl Tensor", checked=True)
@recorded_whole
def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Count the elements in each bin, which holds its left edge; the last bin holds its right edge too.

    Args:
        bins: their number, of equal widths; or their edges in ascending order.
        range: the first and the last edge, for a number of bins; those of the elements if None.
        weight: what each element counts, with the shape of input.
        density: divide by the sum and by the widths, so that the integral over the bins is 1.

    Returns: the counts and the edges, in the dtype of input, which must be a float
    Raises:  DtypeError, ArgumentError
    """
    expect_float("histogram", input.array)
    x = input.detach().flatten()
    edges = bins.detach().clone() if isinstance(bins, Tensor) else _edges(x, bins, range)
    if edges.ndim != 1 or edges.dtype != input.dtype:
        raise ArgumentError(
            f"histogram: bins must be one row of edges of {input.dtype}, got {tuple(edges.shape)} of {edges.dtype}"
        )
    last = edges.shape[0] - 2
    place = apply(searchsorted, edges, x, right=True) - 1
    place[x == edges[-1]] = last
    inside = (place >= 0) & (place <= last)
    weights = None if weight is None else weight.detach().flatten()[inside]
    counts = apply(bincount, place[inside], weights, last + 1).to(input.dtype)
    return return_types.histogram(counts / (counts.sum() * edges.diff()) if density else counts, edges)


def _edges(x: Tensor, bins: int, range: Sequence[float] | None) -> Tensor:
    low, high = map(float, range or (apply(aminmax, x) if x.numel() else (0, 1)))
    if bins < 1 or not math.isfinite(low) or not math.isfinite(high) or low > high:
        raise ArgumentError(f"histogram: expected bins > 0 and a finite range, got bins={bins}, range=({low}, {high})")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)

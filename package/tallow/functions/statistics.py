"""Variances, with PyTorch's several signatures, and covariances."""

from __future__ import annotations

from typing import Any

from tallow.apply import apply
from tallow.dtypes import get_default_dtype
from tallow.errors import ArgumentTypeError, DtypeError, NumericError, ShapeError
from tallow.offer import offer
from tallow.ops.reduction import Dims
from tallow.ops.table import OPS, Scalar
from tallow.tensor import Tensor


def _correction(name: str, dim: Any, unbiased: bool | None, correction: Scalar | None) -> tuple[Dims, Scalar]:
    """`dim` and the correction from what PyTorch's older and newer signatures call them."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and not isinstance(unbiased, bool):
        mend = f"{name}(x, dim, correction={unbiased})"
        raise ArgumentTypeError(f"{name}: unbiased is True or False, not {unbiased!r}", mend=mend)
    if unbiased is not None and correction is not None:
        raise ArgumentTypeError(f"{name}: unbiased and correction exclude each other", mend="give correction alone")
    return dim, (1 if unbiased is not False else 0) if correction is None else correction


@offer("tl Tensor")
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> Tensor:
    """Σ (x - mean)² / max(0, n - correction) over `dim`; `unbiased` is another word for correction=1, the default.

    Dtypes:  any float
    Raises:  DtypeError
    """
    return apply(OPS["var"], input, *_correction("var", dim, unbiased, correction), keepdim)


@offer("tl Tensor")
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> Tensor:
    """The square root of `var`.

    Dtypes:  any float
    Raises:  DtypeError
    """
    return apply(OPS["std"], input, *_correction("std", dim, unbiased, correction), keepdim)


@offer("tl")
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> tuple[Tensor, Tensor]:
    """`var` and `mean`."""
    dim, correction = _correction("var_mean", dim, unbiased, correction)
    return apply(OPS["var"], input, dim, correction, keepdim), apply(OPS["mean"], input, dim, keepdim)


@offer("tl")
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> tuple[Tensor, Tensor]:
    """`std` and `mean`."""
    dim, correction = _correction("std_mean", dim, unbiased, correction)
    return apply(OPS["std"], input, dim, correction, keepdim), apply(OPS["mean"], input, dim, keepdim)


@offer("tl Tensor")
def dist(input: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """The p-norm of the difference, over everything."""
    return apply(OPS["linalg_vector_norm"], input - other, p)


@offer("tl Tensor")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables, a row each, whose observations stand in the columns.

    Args:
        fweights: how often each observation was made.
        aweights: how much each observation counts.

    Shapes:  (N, T) -> (N, N); (T) or (1, T) -> ()
    Raises:  ShapeError, DtypeError, NumericError for weights that are negative or sum to zero
    """
    if input.ndim > 2:
        raise ShapeError(f"cov: expected a matrix or a vector, got shape {tuple(input.shape)}")
    _check_weights(input, fweights, aweights)
    x = input.reshape(1, input.numel()) if input.ndim < 2 else input
    if not x.is_floating_point():
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
    value = scaled @ centred.mT / (total.clamp(min=0) if isinstance(total, Tensor) else x.new_tensor(max(total, 0)))
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


@offer("tl Tensor")
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, a row each: their covariances by the product of their standard deviations.

    Shapes:  (N, T) -> (N, N); (T) or (1, T) -> ()
    """
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = covariance.diagonal().sqrt()
    return (covariance / deviation.unsqueeze(1) / deviation).clamp(-1, 1)

"""Variances with PyTorch's several signatures, norms, and what follows from other reductions."""

from __future__ import annotations

from typing import Any

from tallow.apply import apply
from tallow.dtypes import bool as bool_
from tallow.errors import ArgumentTypeError, ShapeError
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

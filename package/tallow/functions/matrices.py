"""The functions of matrices that torch has outside of torch.linalg, with their own signatures."""

from __future__ import annotations

from typing import Any

from tallow import return_types
from tallow.apply import apply
from tallow.errors import ShapeError
from tallow.offer import offer
from tallow.ops.table import OPS
from tallow.tensor import Tensor


@offer("tl Tensor")
def inverse(input: Tensor) -> Tensor:
    """As `linalg.inv`."""
    return apply(OPS["linalg_inv"], input)


@offer("tl Tensor")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """As `linalg.pinv`, with the smallest singular values kept that PyTorch keeps here."""
    return apply(OPS["linalg_pinv"], input, rtol=rcond)


@offer("tl Tensor")
def det(input: Tensor) -> Tensor:
    """As `linalg.det`."""
    return apply(OPS["linalg_det"], input)


@offer("tl Tensor")
def slogdet(input: Tensor) -> Any:
    """As `linalg.slogdet`."""
    return return_types.slogdet(*apply(OPS["linalg_slogdet"], input))


@offer("tl Tensor")
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative."""
    sign, logarithm = apply(OPS["linalg_slogdet"], input)
    return logarithm.where(sign >= 0, float("nan"))


@offer("tl Tensor")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """As `linalg.cholesky`."""
    return apply(OPS["linalg_cholesky"], input, upper=upper)


@offer("tl Tensor")
def qr(input: Tensor, some: bool = True) -> Any:
    """As `linalg.qr`: reduced if `some`, else complete."""
    return return_types.qr(*apply(OPS["linalg_qr"], input, "reduced" if some else "complete"))


@offer("tl Tensor")
def svd(input: Tensor, some: bool = True) -> Any:
    """U, S and V, not Vᵀ, of the singular value decomposition: reduced if `some`, else with square U and V."""
    u, s, vt = apply(OPS["linalg_svd"], input, not some)
    return return_types.svd(u, s, vt.transpose(-2, -1))


@offer("tl Tensor")
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal.

    Raises:  ShapeError for what is no matrix
    """
    if input.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, got shape {tuple(input.shape)}")
    return input.diagonal().sum()

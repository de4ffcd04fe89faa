"""The functions of matrices that torch has outside of torch.linalg, with their own signatures."""

from __future__ import annotations

from typing import Any

from tallow import return_types
from tallow.apply import apply
from tallow.creation import eye, triu_indices
from tallow.errors import ArgumentError, ShapeError
from tallow.functions.filling import offer_in_place
from tallow.offer import offer
from tallow.ops.dims import normalize_dim
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


@offer("tl Tensor")
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X of A · X = input, where A = L · Lᵀ, or Lᵀ · L if `upper`.

    Shapes:  input (..., N, K), L (..., N, N) -> (..., N, K)
    """
    factor = L.mT if upper else L
    half = apply(OPS["linalg_solve_triangular"], factor, input, upper=False)
    return apply(OPS["linalg_solve_triangular"], factor.mT, half, upper=True)


@offer("tl Tensor")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A = L · Lᵀ, or Lᵀ · L if `upper`."""
    return cholesky_solve(eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(L.shape), L, upper)


@offer("tl Tensor")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along `dim` whose p-norm exceeds `maxnorm`, shrunk to it."""
    if maxnorm < 0:
        raise ArgumentError(f"renorm: expected maxnorm >= 0, got {maxnorm}")
    if input.ndim < 2:
        raise ShapeError(f"renorm: expected at least 2 dims, got shape {tuple(input.shape)}")
    at = normalize_dim(dim, input.ndim, "renorm")
    others = [d for d in range(input.ndim) if d != at]
    norms = apply(OPS["linalg_vector_norm"], input, p, others, True)
    return input * (maxnorm / (norms + 1e-7)).where(norms > maxnorm, 1.0)


offer_in_place("renorm_", renorm)


@offer("tl F")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances of all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ...

    Shapes:  (N, M) -> (N · (N - 1) / 2,)
    """
    if input.ndim != 2:
        raise ShapeError(f"pdist: expected a matrix, got shape {tuple(input.shape)}")
    if p < 0:
        raise ArgumentError(f"pdist: expected p >= 0, got {p}")
    first, second = triu_indices(len(input), len(input), 1, device=input.device)
    return apply(OPS["linalg_vector_norm"], input[first] - input[second], p, -1)

"""Matrix functions that torch has outside of torch.linalg, with signatures that differ from those there."""

from __future__ import annotations

from typing import Any

from tallow import return_types
from tallow.core.apply import apply
from tallow.core.creation import eye, triu_indices
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.dtypes import HALVES
from tallow.errors import ArgumentError, ShapeError
from tallow.functions.filling import copy_
from tallow.ops.checks import unsupported
from tallow.ops.decomposition import linalg_cholesky, linalg_qr, linalg_svd, linalg_svdvals
from tallow.ops.dims import normalize_dim
from tallow.ops.distance import distance
from tallow.ops.linalg import cholesky_solve, linalg_det, linalg_inv, linalg_pinv, linalg_slogdet
from tallow.ops.norm import linalg_vector_norm


@public("tl Tensor")
def inverse(input: Tensor) -> Tensor:
    """Invert square matrices; see `linalg.inv`."""
    return apply(linalg_inv, input)


@public("tl Tensor", checked=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Compute the pseudoinverse; see `linalg.pinv`. The default of `rcond` is smaller than there, as in PyTorch."""
    return apply(linalg_pinv, input, rtol=rcond)


@public("tl Tensor")
def det(input: Tensor) -> Tensor:
    """Compute the determinant; see `linalg.det`."""
    return apply(linalg_det, input)


@public("tl Tensor")
def slogdet(input: Tensor) -> Any:
    """Compute the sign and the logarithm of the determinant; see `linalg.slogdet`."""
    return return_types.slogdet(*apply(linalg_slogdet, input))


@public("tl Tensor")
def logdet(input: Tensor) -> Tensor:
    """Compute the logarithm of the determinant; NaN where it is negative, complex for complex matrices."""
    sign, logarithm = apply(linalg_slogdet, input)
    if sign.is_complex():
        return logarithm + sign.log()
    return logarithm.where(sign >= 0, float("nan"))


@public("tl Tensor")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Compute the Cholesky factor; see `linalg.cholesky`."""
    return apply(linalg_cholesky, input, upper=upper)


@public("tl Tensor")
def qr(input: Tensor, some: bool = True) -> Any:
    """Compute the QR decomposition, reduced if `some`, else complete; see `linalg.qr`."""
    return return_types.qr(*apply(linalg_qr, input, "reduced" if some else "complete"))


@public("tl Tensor", checked=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Compute U, S and V (not Vᵀ) of the singular value decomposition; with square U and V unless `some`.

    Without `compute_uv` U and V are square and zero.
    """
    if not compute_uv:
        *lead, m, n = input.shape
        u, s, v = input.new_zeros(*lead, m, m), apply(linalg_svdvals, input), input.new_zeros(*lead, n, n)
        return return_types.svd(u, s, v)
    u, s, vt = apply(linalg_svd, input, not some)
    return return_types.svd(u, s, vt.transpose(-2, -1))


@public("tl Tensor")
def trace(input: Tensor) -> Tensor:
    """Sum the diagonal of a matrix.

    Raises:  ShapeError for what is no matrix
    """
    if input.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, got shape {tuple(input.shape)}")
    return input.diagonal().sum()


@public("tl Tensor")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Compute the inverse of A = L · Lᵀ, or Lᵀ · L if `upper`. The gradient is as that of `cholesky_solve`."""
    return apply(cholesky_solve, eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(L.shape), L, upper)


@public("tl Tensor", checked=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scale the slices along `dim` whose p-norm exceeds `maxnorm` down to it."""
    if maxnorm < 0:
        raise ArgumentError(f"renorm: expected maxnorm >= 0, got {maxnorm}")
    if input.ndim < 2:
        raise ShapeError(f"renorm: expected at least 2 dims, got shape {tuple(input.shape)}")
    at = normalize_dim(dim, input.ndim, "renorm")
    others = [d for d in range(input.ndim) if d != at]
    norms = apply(linalg_vector_norm, input, p, others, True)
    return input * (maxnorm / (norms + 1e-7)).where(norms > maxnorm, 1.0)


@public("Tensor_")
def renorm_(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Compute `renorm` in place."""  # of a clone, because backward may need the value that is overwritten
    return copy_(input, renorm(input.clone(), p, dim, maxnorm))


@public("tl F")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Compute the p-norm distances of all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ...

    Shapes:  (N, M) -> (N · (N - 1) / 2,)
    """
    if input.ndim != 2:
        raise ShapeError(f"pdist: expected a matrix, got shape {tuple(input.shape)}")
    if input.array.dtype in HALVES:
        raise unsupported("pdist", input.dtype, "float32 or float64", "convert it first: x.float()")
    if p < 0:
        raise ArgumentError(f"pdist: expected p >= 0, got {p}")
    first, second = triu_indices(len(input), len(input), 1, device=input.device)
    return apply(distance, input[first] - input[second], p)

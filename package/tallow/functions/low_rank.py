"""Randomized decompositions of low rank.

Source:  Halko, Martinsson & Tropp 2009, arXiv:0909.4061, algorithms 4.4 and 5.1
"""

from __future__ import annotations

from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.functions.sampling import randn


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """Return orthonormal columns whose span is near the one of the greatest `q` singular vectors of A."""
    Q = (A @ randn(A.shape[-1], q, dtype=A.dtype, device=A.device)).qr().Q
    for _ in range(niter):
        Q = (A.mT @ Q).qr().Q
        Q = (A @ Q).qr().Q
    return Q


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return U, S and V of a matrix of low rank, A - M ≈ U diag(S) Vᵀ, from random products.

    Args:
        q: an estimate of the rank, better too great than too small.
        niter: subspace iterations; more of them separate near singular values.
        M: the mean, of the shape of A.

    Shapes:  (..., M, N) -> (..., M, q), (..., q), (..., N, q)
    """
    rank = 6 if q is None else q
    A = A if M is None else A - M.expand(A.shape)
    is_wide = A.shape[-2] < A.shape[-1]
    A = A.mT if is_wide else A
    Q = _basis(A, rank, 2 if niter is None else niter)
    U, S, V = (Q.mT @ A).svd()
    U = Q @ U
    return (V, S, U) if is_wide else (U, S, V)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, ...]:
    """Return the principal components of the rows of A: the columns of V, of U, S, V as `svd_lowrank`.

    Args:    center: subtract the mean row first

    Raises:  ShapeError unless 0 ≤ q ≤ min(M, N)
    """
    m, n = A.shape[-2:]
    rank = min(6, m, n) if q is None else q
    if not 0 <= rank <= min(m, n):
        raise ShapeError(f"pca_lowrank: q={rank} is not between 0 and min{(m, n)}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, rank, niter)

"""Functions of the LU decomposition, and factorizations that report failure instead of raising."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow import dtypes, return_types
from tallow.core.apply import apply
from tallow.core.creation import arange, eye, zeros
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import LinAlgError, ShapeError, UnsupportedError
from tallow.ops.decomposition import linalg_cholesky
from tallow.ops.joining import stack
from tallow.ops.linalg import linalg_inv, linalg_solve_triangular
from tallow.ops.lu import lu_factor
from tallow.ops.table import Op


def _expect_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise UnsupportedError(f"{name}: pivot=False is not supported, as in PyTorch on the CPU")


@public("linalg")
@recorded_whole
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Return L and U of A = P L U in one matrix, and the pivots; for `lu_solve`.

    Shapes:  (..., M, N) -> LU (..., M, N), pivots (..., min(M, N)) of int32, rows counted from one
    Raises:  LinAlgError for a zero on the diagonal of U
    """
    _expect_pivot("linalg.lu_factor", pivot)
    LU, pivots, _ = apply(lu_factor, A)
    if bool((LU.detach().diagonal(dim1=-2, dim2=-1) == 0).any()):
        raise LinAlgError("linalg.lu_factor: U has a zero on its diagonal", hint="linalg.lu factors such matrices")
    return return_types.linalg_lu_factor(LU, pivots)


@public("linalg")
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """Return the permutation P, the lower triangular L with a unit diagonal and the upper triangular U of A = P L U.

    Shapes:  (..., M, N) -> P (..., M, M), L (..., M, K), U (..., K, N) with K = min(M, N)
    """
    _expect_pivot("linalg.lu", pivot)
    LU, _, order = apply(lu_factor, A)
    m, n = A.shape[-2:]
    k = min(m, n)
    P = (arange(m, device=A.device).unsqueeze(-1) == order.unsqueeze(-2)).to(A.dtype)
    L = LU[..., :k].tril(-1) + eye(m, k, dtype=A.dtype, device=A.device)
    return return_types.linalg_lu(P, L, LU[..., :k, :].triu())


def rows_of_pivots(pivots: Tensor, count: int) -> Tensor:
    """Return the order of `count` rows after their exchanges with the pivots of LAPACK, one after the other."""
    rows = pivots.long()[..., :1] * 0 + arange(
        count, device=pivots.device
    )  # of each matrix, also of a batch under vmap
    for j in range(pivots.shape[-1]):
        chosen = pivots[..., j : j + 1].long() - 1
        here = rows[..., j : j + 1].clone()
        rows[..., j : j + 1] = rows.gather(-1, chosen)
        rows.scatter_(-1, chosen, here)
    return rows


@public("linalg", checked=True)
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return X in A X = B, given the results of `lu_factor(A)`; in X A = B if not `left`, in Aᴴ X = B if `adjoint`.

    Shapes:  LU (..., N, N), pivots (..., N), B (..., N, K), or (..., K, N) if not `left` -> as B
    """
    n = LU.shape[-1]
    if LU.shape[-2] != n or tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise ShapeError(f"linalg.lu_solve: LU {tuple(LU.shape)} and pivots {tuple(pivots.shape)} do not fit together")
    if not left:
        return linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    rows = rows_of_pivots(pivots, n)
    P = (arange(n, device=LU.device) == rows.unsqueeze(-1)).to(LU.dtype)  # P A = L U
    if adjoint:
        half = apply(linalg_solve_triangular, LU.mH, B, upper=False)
        return P.mT @ apply(linalg_solve_triangular, LU.mH, half, upper=True, unitriangular=True)
    half = apply(linalg_solve_triangular, LU, P @ B, upper=False, unitriangular=True)
    return apply(linalg_solve_triangular, LU, half, upper=True)


@public("linalg")
@recorded_whole
def linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Return the Cholesky factor, and 0 for each matrix that has one: for others the size of the minor that has none.

    Where there is no factor, the rest of the matrix stands from the column where the factorization stopped, as in
    LAPACK without blocks; it is a constant. PyTorch's is the same up to a size of about 100.

    Args:    check_errors: raise LinAlgError, as `linalg.cholesky`
    Shapes:  (..., N, N) -> L (..., N, N), info (...) of int32
    """
    return _with_info(return_types.linalg_cholesky_ex, linalg_cholesky, _stopped_factor, A, check_errors, upper=upper)


def _stopped_factor(A: Tensor, upper: bool) -> tuple[Tensor, int]:
    """Return the factor up to the column where it does not exist, and the number of that column, from one."""
    if upper:
        factor, info = _stopped_factor(A.mH, upper=False)
        return factor.mH, info
    info = _minor_without_factor(A)
    k = info - 1
    factor = A.tril()
    if k:
        factor[:k, :k] = apply(linalg_cholesky, A[:k, :k])
        factor[k:, :k] = apply(linalg_solve_triangular, factor[:k, :k], A[k:, :k].mH, upper=False).mH
        factor[k, k] -= factor[k, :k].abs().square().sum()
    return factor, info


def _minor_without_factor(A: Tensor) -> int:
    low, high = 0, A.shape[-1]  # the minor of size low has a factor, that of size high has none
    while high - low > 1:
        middle = (low + high) // 2
        try:
            apply(linalg_cholesky, A[:middle, :middle])
            low = middle
        except LinAlgError:
            high = middle
    return high


@public("linalg")
@recorded_whole
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Return the inverse, and 0 for each matrix that has one: for others the number of the pivot that is zero.

    For a singular matrix, the division by that zero gives inf and NaN; they are constants.

    Args:    check_errors: raise LinAlgError, as `linalg.inv`
    Shapes:  (..., N, N) -> inverse (..., N, N), info (...) of int32
    """
    return _with_info(return_types.linalg_inv_ex, linalg_inv, _divided_by_zero, A, check_errors)


def _divided_by_zero(A: Tensor) -> tuple[Tensor, int]:
    """Return U⁻¹ L⁻¹ P of a singular matrix, and the number, from one, of the first zero on the diagonal of U."""
    LU, _, order = apply(lu_factor, A)
    P = (arange(len(A), device=A.device) == order.unsqueeze(-1)).to(A.dtype)
    inverse = apply(linalg_solve_triangular, LU, P, upper=False, unitriangular=True)
    for i in reversed(range(len(A))):
        inverse[i] = (inverse[i] - LU[i, i + 1 :] @ inverse[i + 1 :]) / LU[i, i]
    return inverse, int((LU.diagonal() == 0).byte().argmax()) + 1


def _with_info(
    result: Callable[[Tensor, Tensor], Any],
    factorization: Op,
    failed: Callable[..., tuple[Tensor, int]],
    A: Tensor,
    check_errors: bool,
    **options: Any,
) -> Any:
    """Return an op's value and 0 for each matrix, or what `failed` returns for those on which it fails."""
    try:
        value = apply(factorization, A, **options)
        return result(value, zeros(A.shape[:-2], dtype=dtypes.int32, device=A.device))
    except LinAlgError:
        if check_errors:
            raise
    if A.ndim > 2:
        matrices = A.flatten(0, -3).unbind(0)
        pairs = [_with_info(result, factorization, failed, matrix, False, **options) for matrix in matrices]
        values, infos = (apply(stack, list(part), 0) for part in zip(*pairs, strict=True))
        return result(values.reshape(A.shape), infos.reshape(A.shape[:-2]))
    value, info = failed(A.detach(), **options)
    return result(value, zeros((), dtype=dtypes.int32, device=A.device) + info)

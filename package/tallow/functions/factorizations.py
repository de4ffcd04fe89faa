"""Functions over the factorizations of LAPACK: LU, QR by reflections, LDLᵀ; and the older names of torch for them."""

from __future__ import annotations

from typing import Any

from tallow import dtypes, return_types
from tallow.core.apply import apply
from tallow.core.creation import arange, eye, zeros
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import LinAlgError, ShapeError, warn
from tallow.functions.lu import _expect_pivot, linalg_lu_solve, rows_of_pivots
from tallow.ops.householder import ldl_factor, ldl_solve
from tallow.ops.linalg import linalg_solve, linalg_solve_triangular
from tallow.ops.lu import lu_factor


@public("linalg")
@recorded_whole
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Return L and U in one matrix, the pivots, and 0 for each matrix, or the number, from one, of U's first zero.

    Args:    check_errors: raise LinAlgError for a zero on the diagonal of U
    Shapes:  (..., M, N) -> LU (..., M, N), pivots (..., min(M, N)) and info (...) of int32
    """
    _expect_pivot("linalg.lu_factor_ex", pivot)
    LU, pivots, _ = apply(lu_factor, A)
    is_zero = LU.detach().diagonal(dim1=-2, dim2=-1) == 0
    if check_errors and bool(is_zero.any()):
        raise LinAlgError("linalg.lu_factor_ex: U has a zero on its diagonal")
    if is_zero.shape[-1]:
        info = (is_zero.byte().argmax(-1) + 1) * is_zero.any(-1)
    else:
        info = zeros(A.shape[:-2], device=A.device)
    return return_types.linalg_lu_factor_ex(LU, pivots, info.to(dtypes.int32))


@public("tl Tensor")
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return what `linalg.lu_factor` does, and with `get_infos` a third tensor, as `linalg.lu_factor_ex`."""
    warn("lu is deprecated in favor of linalg.lu_factor / linalg.lu_factor_ex and will be removed in a future release")
    result = linalg_lu_factor_ex(input, pivot=pivot, check_errors=not get_infos)
    return tuple(result) if get_infos else tuple(result[:2])


@public("tl Tensor")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return the X of A X = input, given the results of `linalg.lu_factor(A)`; see `linalg.lu_solve`."""
    warn("lu_solve is deprecated in favor of linalg.lu_solve, which has its arguments reversed")
    return linalg_lu_solve(LU_data, LU_pivots, input)


@public("tl", checked=True)
@recorded_whole
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Return P, L and U of A = P L U, given the results of `linalg.lu_factor(A)`. What is not asked for is empty.

    Shapes:  (..., M, N), (..., K) -> (..., M, M), (..., M, K), (..., K, N) with K = min(M, N)
    """
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P = L = U = LU_data.new_empty(0)
    if unpack_pivots:
        P = (arange(m, device=LU_data.device).unsqueeze(-1) == rows_of_pivots(LU_pivots, m).unsqueeze(-2)).to(
            LU_data.dtype
        )
    if unpack_data:
        L = LU_data[..., :k].tril(-1) + eye(m, k, dtype=LU_data.dtype, device=LU_data.device)
        U = LU_data[..., :k, :].triu()
    return return_types.lu_unpack(P, L, U)


@public("linalg")
@recorded_whole
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return the solution of `linalg.solve`, and 0 for each matrix, or the number of the first pivot that is zero.

    The solutions of a batch with a singular matrix are NaN.

    Args:    check_errors: raise LinAlgError, as `linalg.solve`
    """
    try:
        result = apply(linalg_solve, A, B, left=left)
        info = zeros(A.shape[:-2], dtype=dtypes.int32, device=A.device)
    except LinAlgError:
        if check_errors:
            raise
        info = linalg_lu_factor_ex(A.detach()).info
        safe = A.detach() + eye(A.shape[-1], dtype=A.dtype, device=A.device)
        result = apply(
            linalg_solve, safe * 0 + eye(len(safe.mT), dtype=A.dtype, device=A.device), B.detach(), left=left
        )
        result = result * float("nan")
    return return_types.linalg_solve_ex(result, info)


@public("tl Tensor")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Return the X of A X = b for a triangular A, or of Aᵀ X = b, and a copy of A; see `linalg.solve_triangular`."""
    warn("triangular_solve is deprecated in favor of linalg.solve_triangular, which has its arguments exchanged")
    matrix = A.mT if transpose else A
    solution = apply(linalg_solve_triangular, matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    copy = A.expand(*solution.shape[:-2], *A.shape[-2:]).clone()
    return return_types.triangular_solve(solution, copy)


def _reflected(x: Tensor, A: Tensor, tau: Tensor, order: Any, left: bool) -> Tensor:
    """Multiply x by the reflections of `geqrf`, one after the other."""
    vectors = A.tril(-1) + eye(*A.shape[-2:], dtype=A.dtype, device=A.device)
    for i in order:
        v, factor = vectors[..., :, i : i + 1], tau[..., i, None, None]
        x = x - factor * v @ (v.mH @ x) if left else x - (x @ v) @ (factor * v.mH)
    return x


@public("linalg")
@recorded_whole
def linalg_householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of Q, given the results of `geqrf`: the product H_1 H_2 ... H_k.

    Shapes:  A (..., M, N) with M ≥ N, tau (..., K) with K ≤ N -> (..., M, N)
    """
    m, n = A.shape[-2:]
    k = tau.shape[-1]
    if m < n or n < k or tuple(A.shape[:-2]) != tuple(tau.shape[:-1]):
        raise ShapeError(
            f"linalg.householder_product: A {tuple(A.shape)} and tau {tuple(tau.shape)} do not fit together"
        )
    one = eye(m, n, dtype=A.dtype, device=A.device).expand(A.shape)
    return _reflected(one, A, tau, reversed(range(k)), left=True)


@public("tl Tensor")
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """Return the first columns of Q; see `linalg.householder_product`."""
    return linalg_householder_product(input, input2)


@public("tl Tensor", checked=True)
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Multiply `input3` by the square Q, or its conjugate transpose, of which `geqrf` has returned the reflections.

    Args:    input2: the factors τ that `geqrf` has returned beside `input`
    Shapes:  input (..., M, K), input2 (..., K), input3 (..., M, N), or (..., N, M) if not `left` -> as input3
    Raises:  ShapeError unless K factors are as many as there are reflections
    """
    if input.ndim < 2 or input3.ndim < 2:
        raise ShapeError("ormqr: input and input3 must have at least 2 dimensions")
    rows = input3.shape[-2 if left else -1]
    if input2.shape[-1] != min(rows, input.shape[-1]):
        raise ShapeError(f"ormqr: {input2.shape[-1]} factors for {rows} rows and input {tuple(input.shape)}")
    order = range(input2.shape[-1])
    factors = input2.conj() if transpose else input2
    return _reflected(input3, input, factors, order if left == transpose else reversed(order), left)


@public("linalg")
@recorded_whole
def linalg_ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Return the factors of symmetric matrices, A = L D Lᵀ, in one matrix, the pivots, and 0 for each matrix.

    For a matrix with a singular D, the number of its first zero, from one. There is no gradient.

    Args:
        hermitian: whether complex matrices are Hermitian, A = L D Lᴴ, not symmetric.
        check_errors: raise LinAlgError for a singular D.

    Shapes:  (..., N, N) -> LD (..., N, N), pivots (..., N) and info (...) of int32
    """
    LD, pivots, info = apply(ldl_factor, A, hermitian)
    if check_errors and bool((info != 0).any()):
        raise LinAlgError("linalg.ldl_factor_ex: D is singular")
    return return_types.linalg_ldl_factor_ex(LD, pivots, info)


@public("linalg")
def linalg_ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """Return the factors of symmetric matrices and the pivots, for `linalg.ldl_solve`; see `linalg.ldl_factor_ex`."""
    LD, pivots, _ = linalg_ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return return_types.linalg_ldl_factor(LD, pivots)


@public("linalg")
@recorded_whole
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Return the X of A X = B, given the results of `linalg.ldl_factor(A)`. There is no gradient.

    Shapes:  LD (..., N, N), pivots (..., N), B (..., N, K) -> as B
    """
    n = LD.shape[-1]
    if B.ndim < 2 or B.shape[-2] != n or tuple(pivots.shape) != tuple(LD.shape[:-1]):
        shapes = ", ".join(str(tuple(x.shape)) for x in (LD, pivots, B))
        raise ShapeError(f"linalg.ldl_solve: LD, pivots and B do not fit together: {shapes}")
    return apply(ldl_solve, LD, pivots, B, hermitian)

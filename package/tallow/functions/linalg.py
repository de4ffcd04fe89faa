"""Matrix norms and other functions of torch.linalg that are composed of ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow import return_types
from tallow.core.apply import apply
from tallow.core.creation import eye
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, LinAlgError, ShapeError
from tallow.ops.decomposition import linalg_svdvals
from tallow.ops.dims import as_ints, normalize_dim
from tallow.ops.joining import cat
from tallow.ops.linalg import linalg_inv, linalg_pinv, linalg_solve, matrix_rank
from tallow.ops.norm import linalg_vector_norm
from tallow.ops.reduction import Dims
from tallow.ops.table import Scalar


def _vector_norm(x: Tensor, ord: Scalar, dim: Dims, keepdim: bool, dtype: Any) -> Tensor:
    return apply(linalg_vector_norm, x, ord, dim, keepdim, dtype=dtype)


@public("linalg", checked=True)
def linalg_matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Compute a norm of the matrices in two dims.

        "fro"     √Σ x²                        "nuc"      Σ of the singular values
        ±inf      greatest/least row of Σ |x|  ±1         the same of columns
        ±2        greatest/least singular value

    Raises:  ArgumentError for another `ord`, DtypeError, ShapeError
    """
    if len(dim) != 2 or A.ndim < 2:
        raise ShapeError(f"linalg.matrix_norm: needs two dims of a tensor, got dim={dim}, shape {tuple(A.shape)}")
    if ord == "fro":
        return _vector_norm(A, 2, dim, keepdim, dtype)
    rows, columns = (normalize_dim(d, A.ndim, "linalg.matrix_norm") for d in dim)
    if ord in ("nuc", 2, -2):
        x = A if dtype is None else A.to(dtype)
        values = apply(linalg_svdvals, x.movedim((rows, columns), (-2, -1)))
        if not values.shape[-1] and ord == 2:
            norm = A.new_zeros(values.shape[:-1])
        else:
            norm = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
        inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = _vector_norm(A, 1, inner, True, dtype)
        if ord > 0 and not A.shape[outer]:
            norm = sums.sum(outer, True).squeeze((rows, columns))
        else:
            norm = (sums.amax(outer, True) if ord > 0 else sums.amin(outer, True)).squeeze((rows, columns))
    else:
        raise ArgumentError(f"linalg.matrix_norm: ord={ord!r}", hint="use 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2")
    return norm.unsqueeze(min(rows, columns)).unsqueeze(max(rows, columns)) if keepdim else norm


@public("linalg")
def linalg_norm(A: Tensor, ord: Any = None, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Compute a vector norm over one dim, or a matrix norm over two; without `ord` the 2-norm over any dims.

    Raises:  as `linalg.vector_norm` and `linalg.matrix_norm`
    """
    if ord is None:
        return _vector_norm(A, 2, dim, keepdim, dtype)
    if (A.ndim if dim is None else len(as_ints(dim, "linalg.norm"))) == 1:
        if isinstance(ord, str):
            raise ShapeError(f"linalg.norm: ord={ord!r} is a norm of matrices; got dim={dim}, shape {tuple(A.shape)}")
        return _vector_norm(A, ord, dim, keepdim, dtype)
    if dim is None and A.ndim != 2:
        raise ShapeError(f"linalg.norm: ord={ord!r} without dim needs 1 or 2 dimensions, got shape {tuple(A.shape)}")
    return linalg_matrix_norm(A, ord, (-2, -1) if dim is None else as_ints(dim, "linalg.norm"), keepdim, dtype=dtype)


@public("tl Tensor")
def norm(input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Compute (Σ |x|^p)^(1/p) over `dim`; "fro" is p = 2, "nuc" the nuclear norm of matrices."""
    if p == "nuc":
        if dim is None and input.ndim != 2:
            raise ShapeError(f"norm: the nuclear norm of all dims needs a matrix, got shape {tuple(input.shape)}")
        return linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)  # type: ignore[arg-type]
    return _vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype)


@public("linalg")
def linalg_cond(A: Tensor, p: Any = None) -> Tensor:
    """Compute the condition number ‖A‖_p ‖A⁻¹‖_p; without p the ratio of the extreme singular values.

    It is inf for a singular matrix.
    """
    if A.ndim < 2 or (p not in (None, 2, -2) and A.shape[-1] != A.shape[-2]):
        raise ShapeError(f"linalg.cond: expected matrices, square ones for p={p!r}, got shape {tuple(A.shape)}")
    if not A.numel():
        return A.new_zeros(A.shape[:-2])
    if p in (None, 2, -2):
        values = apply(linalg_svdvals, A)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    try:
        inverse = apply(linalg_inv, A)
    except LinAlgError:
        return linalg_matrix_norm(A, p) * math.inf
    return linalg_matrix_norm(A, p) * linalg_matrix_norm(inverse, p)


@public("linalg")
def linalg_matrix_rank(
    A: Tensor, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False
) -> Tensor:
    """Return the number of singular values greater than max(atol, rtol · the greatest one).

    Args:
        rtol: max(M, N) · eps unless atol is given.
        tol: another name for atol.
    """
    return apply(matrix_rank, A, atol if tol is None else tol, rtol, hermitian)


@public("linalg")
@recorded_whole
def linalg_lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Solve the least-squares problem min ‖A X - B‖ for the X of smallest norm.

    Returns X, the residuals, the rank of A and its singular values.

    Args:
        rcond: singular values below rcond · the greatest count as zero; max(M, N) · eps by default.
        driver: as in PyTorch "gelsy" (the default), "gels", "gelsd" or "gelss". It decides what is returned beside X;
            the method is the pseudo-inverse always.

    Shapes:  A (..., M, N), B (..., M, K) or (..., M) -> solution (..., N, K) or (..., N);
             residuals (..., K) if M > N and A has full rank, not for gelsy; rank (...), not for gels;
             singular_values (..., min(M, N)) for gelsd and gelss. What is not there is empty.
    Raises:  ArgumentError, ShapeError
    """
    if driver not in (None, "gelsy", "gels", "gelsd", "gelss"):
        raise ArgumentError(f"linalg.lstsq: driver={driver!r}", hint="use 'gelsy', 'gels', 'gelsd' or 'gelss'")
    if A.ndim < 2:
        raise ShapeError(f"linalg.lstsq: A must have at least 2 dimensions, got shape {tuple(A.shape)}")
    vectors = B.ndim + 1 == A.ndim
    b = B.unsqueeze(-1) if vectors else B
    if b.ndim != A.ndim:
        raise ShapeError(f"linalg.lstsq: A {tuple(A.shape)} must have as many dims as B {tuple(B.shape)}, or one more")
    if b.shape[-2] != A.shape[-2]:
        raise ShapeError(f"linalg.lstsq: A {tuple(A.shape)} and B {tuple(B.shape)} must have the same number of rows")
    m, n = A.shape[-2:]
    solution = apply(linalg_pinv, A, rtol=rcond) @ b
    rank = apply(matrix_rank, A.detach(), None, rcond, False)
    nothing = A.detach().real.new_empty(0)
    has_residuals = m > n and (driver == "gels" or (driver in ("gelsd", "gelss") and bool((rank == n).all())))
    residuals = (A @ solution - b).abs().square().sum(-2) if has_residuals else nothing
    values = apply(linalg_svdvals, A.detach()) if driver in ("gelsd", "gelss") else nothing
    solution = solution.squeeze(-1) if vectors else solution
    return return_types.linalg_lstsq(solution, residuals, nothing.long() if driver == "gels" else rank, values)


@public("linalg")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices, as a view."""
    return A.diagonal(offset, dim1, dim2)


@public("tl Tensor linalg")
@recorded_whole
def matrix_exp(input: Tensor) -> Tensor:
    """Compute the matrix exponential Σ Aᵏ / k! of square matrices.

    A is halved until its norm is below 1/2, where 18 terms are exact to double precision, and the result is squared as
    often again.

    Dtypes:  any float; halves are computed in float32
    Source:  Moler & Van Loan 2003, "Nineteen Dubious Ways to Compute the Exponential of a Matrix", method 3
    """
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ShapeError(f"linalg.matrix_exp: expected square matrices, got shape {tuple(input.shape)}")
    if input.dtype.itemsize < 4:
        return matrix_exp(input.float()).to(input.dtype)
    norm = _vector_norm(input.detach(), 1, -1, False, None).max().item() if input.numel() else 0.0
    halvings = max(0, math.ceil(math.log2(norm)) + 1) if norm > 0 and math.isfinite(norm) else 0
    a = input / 2**halvings
    one = eye(input.shape[-1], dtype=input.dtype, device=input.device)
    total = one + a / 18
    for k in range(17, 0, -1):  # Horner's scheme
        total = one + a @ total / k
    for _ in range(halvings):
        total = total @ total
    return total


@public("linalg")
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Solve tensordot(A, X, X.ndim) = B for X.

    Args:
        dims: dimensions of A to move to its end first.

    Raises:  ShapeError, LinAlgError
    """
    a = A if dims is None else A.movedim(tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = a.shape[B.ndim :]
    if math.prod(shape) != B.numel() or math.prod(a.shape[: B.ndim]) != B.numel():
        raise ShapeError(
            f"linalg.tensorsolve: A of shape {tuple(a.shape)} does not make a square matrix for B {tuple(B.shape)}"
        )
    x: Tensor = apply(linalg_solve, a.reshape(B.numel(), B.numel()), B.reshape(B.numel()))
    return x.reshape(shape)


@public("linalg")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 0, 1, ..., N - 1 of each element, as rows; N is the length of x by default."""
    if not x.ndim:
        x = x.reshape(1)
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise ShapeError(f"linalg.vander: N must be greater than 1, got {n}")
    ones = x.new_ones(*x.shape, 1)
    return apply(cat, [ones, x.unsqueeze(-1).expand(*x.shape, n - 1).cumprod(-1)], -1)


@public("linalg")
def linalg_tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Compute the inverse with respect to `tensordot`: that of A as a matrix with its first `ind` dims as rows."""
    if ind <= 0:
        raise ArgumentError(f"linalg.tensorinv: ind={ind} must be positive")
    rows, columns = A.shape[:ind], A.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ShapeError(f"linalg.tensorinv: {tuple(rows)} and {tuple(columns)} have different products")
    inverse: Tensor = apply(linalg_inv, A.reshape(math.prod(rows), math.prod(columns)))
    return inverse.reshape(*columns, *rows)

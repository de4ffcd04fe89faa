"""Functions of tallow.linalg. Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tallow.autograd.api import GradStore
from tallow.devices import device as Device
from tallow.dtypes import dtype as Dtype
from tallow.ops.memory_format import memory_format as MemoryFormat
from tallow.random import Generator
from tallow.signatures import results
from tallow.core.size import Size
from tallow.core.tensor import Tensor

def cholesky(A: Tensor, *, upper: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return the lower triangular L in A = L Lᴴ, or with `upper` its conjugate transpose; one triangle of A is read."""

def cholesky_ex(A: Tensor, *, upper: builtins.bool = ..., check_errors: builtins.bool = ...) -> Any:
    """Return the Cholesky factor, and 0 for each matrix that has one: for others the size of the minor that has none."""

def cond(A: Tensor, p: Any = ...) -> Tensor:
    """Compute the condition number ‖A‖_p ‖A⁻¹‖_p; without p the ratio of the extreme singular values."""

def cross(input: Tensor, other: Tensor, *, dim: builtins.int = ..., out: Any = ...) -> Tensor:
    """Return the cross product along `dim`."""

def det(A: Tensor, *, out: Any = ...) -> Tensor:
    """Return the determinant of square matrices."""

def diagonal(A: Tensor, *, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """Return the diagonals of matrices, as a view."""

def eig(A: Tensor, *, out: Any = ...) -> results.linalg_eig:
    """Return the eigenvalues of square matrices, and eigenvectors of unit length as columns."""

def eigh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> results.linalg_eigh:
    """Return the eigenvalues of symmetric matrices in ascending order, and orthonormal eigenvectors as columns."""

def eigvals(A: Tensor, *, out: Any = ...) -> Tensor:
    """Return the eigenvalues of square matrices; see `linalg.eig`."""

def eigvalsh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> Tensor:
    """Return the eigenvalues of symmetric matrices in ascending order; see `linalg.eigh`."""

def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of Q, given the results of `geqrf`: the product H_1 H_2 ... H_k."""

def inv(A: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse B of square matrices."""

def inv_ex(A: Tensor, *, check_errors: builtins.bool = ...) -> Any:
    """Return the inverse, and 0 for each matrix that has one: for others the number of the pivot that is zero."""

def ldl_factor(A: Tensor, *, hermitian: builtins.bool = ...) -> Any:
    """Return the factors of symmetric matrices and the pivots, for `linalg.ldl_solve`; see `linalg.ldl_factor_ex`."""

def ldl_factor_ex(A: Tensor, *, hermitian: builtins.bool = ..., check_errors: builtins.bool = ...) -> Any:
    """Return the factors of symmetric matrices, A = L D Lᵀ, in one matrix, the pivots, and 0 for each matrix."""

def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: builtins.bool = ...) -> Tensor:
    """Return the X of A X = B, given the results of `linalg.ldl_factor(A)`. There is no gradient."""

def lstsq(A: Tensor, B: Tensor, rcond: Any = ..., *, driver: builtins.str | None = ...) -> Any:
    """Solve the least-squares problem min ‖A X - B‖ for the X of smallest norm."""

def lu(A: Tensor, *, pivot: builtins.bool = ...) -> Any:
    """Return the permutation P, the lower triangular L with a unit diagonal and the upper triangular U of A = P L U."""

def lu_factor(A: Tensor, *, pivot: builtins.bool = ...) -> Any:
    """Return L and U of A = P L U in one matrix, and the pivots; for `lu_solve`."""

def lu_factor_ex(A: Tensor, *, pivot: builtins.bool = ..., check_errors: builtins.bool = ...) -> Any:
    """Return L and U in one matrix, the pivots, and 0 for each matrix, or the number, from one, of U's first zero."""

def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: builtins.bool = ..., adjoint: builtins.bool = ...) -> Tensor:
    """Return X in A X = B, given the results of `lu_factor(A)`; in X A = B if not `left`, in Aᴴ X = B if `adjoint`."""

def matmul(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """Return the matrix product over the last two dims; a vector is a row on the left, a column on the right."""

def matrix_exp(input: Tensor) -> Tensor:
    """Compute the matrix exponential Σ Aᵏ / k! of square matrices."""

def matrix_norm(A: Tensor, ord: Any = ..., dim: Sequence[builtins.int] = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
    """Compute a norm of the matrices in two dims."""

def matrix_power(input: Tensor, n: builtins.int) -> Tensor:
    """Compute the n-th power of square matrices by repeated squaring; of their inverses for a negative n."""

def matrix_rank(A: Tensor, tol: Any = ..., *, atol: Any = ..., rtol: Any = ..., hermitian: builtins.bool = ...) -> Tensor:
    """Return the number of singular values greater than max(atol, rtol · the greatest one)."""

def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Multiply two or more matrices in the order with the fewest multiplications."""

def norm(A: Tensor, ord: Any = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
    """Compute a vector norm over one dim, or a matrix norm over two; without `ord` the 2-norm over any dims."""

def pinv(A: Tensor, *, atol: builtins.object = ..., rtol: builtins.object = ..., hermitian: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return the pseudo-inverse: A with its singular values inverted, those below max(atol, rtol · maximum) dropped."""

def qr(A: Tensor, mode: builtins.str = ..., *, out: Any = ...) -> results.linalg_qr:
    """Return Q with orthonormal columns and the upper triangular R in A = Q R."""

def slogdet(A: Tensor, *, out: Any = ...) -> results.linalg_slogdet:
    """Return the sign and ln |det A| of square matrices: (0, -inf) for a singular matrix."""

def solve(A: Tensor, B: Tensor, *, left: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return X in A X = B, or in X A = B if not `left`."""

def solve_ex(A: Tensor, B: Tensor, *, left: builtins.bool = ..., check_errors: builtins.bool = ...) -> Any:
    """Return the solution of `linalg.solve`, and 0 for each matrix, or the number of the first pivot that is zero."""

def solve_triangular(A: Tensor, B: Tensor, *, upper: builtins.bool, left: builtins.bool = ..., unitriangular: builtins.bool = ..., out: Any = ...) -> Tensor:
    """Return X in A X = B, or in X A = B if not `left`, for a triangular A; its other triangle is not read."""

def svd(A: Tensor, full_matrices: builtins.bool = ..., *, driver: builtins.str | None = ..., out: Any = ...) -> results.linalg_svd:
    """Return orthonormal U, the singular values S in descending order, and Vᵀ, in A = U diag(S) Vᵀ."""

def svdvals(A: Tensor, *, driver: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """Return the singular values in descending order. `driver` as in `linalg.svd`."""

def tensorinv(A: Tensor, ind: builtins.int = ...) -> Tensor:
    """Compute the inverse with respect to `tensordot`: that of A as a matrix with its first `ind` dims as rows."""

def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[builtins.int] | None = ...) -> Tensor:
    """Solve tensordot(A, X, X.ndim) = B for X."""

def vander(x: Tensor, *, N: builtins.int | None = ...) -> Tensor:
    """Return the powers 0, 1, ..., N - 1 of each element, as rows; N is the length of x by default."""

def vecdot(x: Tensor, y: Tensor, *, dim: builtins.int = ...) -> Tensor:
    """Compute Σ conj(x) y along `dim`, broadcast."""

def vector_norm(x: Tensor, ord: builtins.float = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """Return the norm (Σ |x|^ord)^(1/ord) over `dim`: for ±inf the maximum or minimum |x|, for 0 the nonzero count."""

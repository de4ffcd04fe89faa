"""Functions of tallow.linalg. Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from tallow.devices import device as Device
from tallow.dtypes import dtype as Dtype
from tallow.layout import memory_format as MemoryFormat
from tallow.random import Generator
from tallow.signatures import results
from tallow.size import Size
from tallow.tensor import Tensor

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

def cholesky(A: Tensor, *, upper: builtins.bool = ..., out: Any = ...) -> Tensor:
    """The lower triangular L in A = L Lᵀ, or its transpose; one triangle of A is read."""

def cond(A: Tensor, p: Any = ...) -> Tensor:
    """‖A‖_p ‖A⁻¹‖_p; without p the ratio of the greatest to the least singular value. inf for a singular matrix."""

def cross(input: Tensor, other: Tensor, *, dim: builtins.int = ..., out: Any = ...) -> Tensor:
    """The cross product along `dim`."""

def det(A: Tensor, *, out: Any = ...) -> Tensor:
    """The determinant of square matrices."""

def diagonal(A: Tensor, *, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """The diagonals of matrices, as a view."""

def eig(A: Tensor, *, out: Any = ...) -> results.linalg_eig:
    """The eigenvalues of square matrices and eigenvectors of unit length, as columns, where all of them are real."""

def eigh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> results.linalg_eigh:
    """The eigenvalues of symmetric matrices, the least first, and orthonormal eigenvectors, as columns."""

def eigvals(A: Tensor, *, out: Any = ...) -> Tensor:
    """The eigenvalues of square matrices, where all of them are real; see `linalg.eig`."""

def eigvalsh(A: Tensor, UPLO: builtins.str = ..., *, out: Any = ...) -> Tensor:
    """The eigenvalues of symmetric matrices, the least first; see `linalg.eigh`."""

def inv(A: Tensor, *, out: Any = ...) -> Tensor:
    """The inverse B of square matrices."""

def lstsq(A: Tensor, B: Tensor, rcond: Any = ..., *, driver: builtins.str | None = ...) -> Any:
    """X that makes ‖A X - B‖ least, and the shortest such X; with residuals, the rank of A and its singular values."""

def matmul(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor:
    """The matrix product, over the last two dimensions; a vector counts as a row on the left, a column on the right."""

def matrix_exp(input: Tensor) -> Tensor:
    """Σ Aᵏ / k!, of square matrices."""

def matrix_norm(A: Tensor, ord: Any = ..., dim: Sequence[builtins.int] = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
    """A norm of the matrices that two dimensions make."""

def matrix_power(input: Tensor, n: builtins.int) -> Tensor:
    """The product of n equal square matrices, by repeated squaring; of their inverses for a negative n."""

def matrix_rank(A: Tensor, tol: Any = ..., *, atol: Any = ..., rtol: Any = ..., hermitian: builtins.bool = ...) -> Tensor:
    """How many singular values exceed max(atol, rtol · the greatest one); `tol` is another word for atol."""

def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices, bracketed so that it takes the fewest multiplications."""

def norm(A: Tensor, ord: Any = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: Any = ...) -> Tensor:
    """A vector norm over one dim, or a matrix norm over two; without `ord` the 2-norm over any dims."""

def pinv(A: Tensor, *, atol: builtins.object = ..., rtol: builtins.object = ..., hermitian: builtins.bool = ..., out: Any = ...) -> Tensor:
    """The pseudo-inverse P: A with its singular values inverted, those below max(atol, rtol · the greatest) dropped."""

def qr(A: Tensor, mode: builtins.str = ..., *, out: Any = ...) -> results.linalg_qr:
    """Q with orthonormal columns and the upper triangular R in A = Q R."""

def slogdet(A: Tensor, *, out: Any = ...) -> results.linalg_slogdet:
    """The sign and the logarithm of the size of the determinant of square matrices: (0, -inf) for a singular one."""

def solve(A: Tensor, B: Tensor, *, left: builtins.bool = ..., out: Any = ...) -> Tensor:
    """X in A X = B, or in X A = B if not `left`."""

def solve_triangular(A: Tensor, B: Tensor, *, upper: builtins.bool, left: builtins.bool = ..., unitriangular: builtins.bool = ..., out: Any = ...) -> Tensor:
    """X in A X = B, or in X A = B if not `left`, of a triangular A; its other triangle is not read."""

def svd(A: Tensor, full_matrices: builtins.bool = ..., *, driver: builtins.str | None = ..., out: Any = ...) -> results.linalg_svd:
    """Orthonormal U and V and the singular values S, the greatest first, in A = U diag(S) Vᵀ; returns U, S, Vᵀ."""

def svdvals(A: Tensor, *, driver: builtins.str | None = ..., out: Any = ...) -> Tensor:
    """The singular values, the greatest first. `driver` as in `linalg.svd`."""

def tensorinv(A: Tensor, ind: builtins.int = ...) -> Tensor:
    """The inverse as regards `tensordot`: of A as a matrix whose rows are its first `ind` dimensions."""

def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[builtins.int] | None = ...) -> Tensor:
    """X in tensordot(A, X, X.ndim) = B."""

def vander(x: Tensor, *, N: builtins.int | None = ...) -> Tensor:
    """The powers 0, 1, ..., N - 1 of each element, as rows; N is the length of x if not given."""

def vecdot(x: Tensor, y: Tensor, *, dim: builtins.int = ...) -> Tensor:
    """Σ x y along `dim`, broadcast."""

def vector_norm(x: Tensor, ord: builtins.float = ..., dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = ..., *, dtype: builtins.object = ..., out: Any = ...) -> Tensor:
    """(Σ |x|^ord)^(1/ord) over `dim`; for ±inf the greatest or least |x|, for 0 how many elements are not zero."""

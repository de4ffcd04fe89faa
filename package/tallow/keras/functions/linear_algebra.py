"""Linear algebra functions. Leading axes are batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.functions.operands import floats


def _from_linalg(name: str) -> Callable[..., Any]:
    function = getattr(tl.linalg, name)

    def apply(x: Any) -> Any:
        result = function(floats(x))
        return result if isinstance(result, Tensor) else tuple(result)

    return apply


def cholesky(x: Any, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of positive definite matrices."""
    lower = tl.linalg.cholesky(floats(x))
    return lower.mT if upper else lower


def cholesky_inverse(x: Any, upper: bool = False) -> Tensor:
    """Return the inverse of the matrix with the triangular Cholesky factor x."""
    return tl.cholesky_inverse(floats(x), upper)


def logdet(x: Any) -> Tensor:
    """Return log |det x| of positive definite matrices."""
    return tl.logdet(floats(x))


def qr(x: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return the QR decomposition."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode={mode!r}", hint="use 'reduced' or 'complete'")
    q, r = tl.linalg.qr(floats(x), mode)
    return q, r


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition (u, s, v), or only the singular values."""
    if not compute_uv:
        return tl.linalg.svdvals(floats(x))
    return tuple(tl.linalg.svd(floats(x), full_matrices))


def solve(a: Any, b: Any) -> Tensor:
    """Solve a x = b."""
    return tl.linalg.solve(floats(a), floats(b))


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Tensor:
    """Solve a x = b with a triangular matrix a."""
    a, b = floats(a), floats(b)
    is_vector = b.ndim == a.ndim - 1
    x = tl.linalg.solve_triangular(a, b[..., None] if is_vector else b, upper=not lower)
    return x[..., 0] if is_vector else x


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Tensor:
    """Return the least-squares solution of a x = b with the smallest norm."""
    a, b = floats(a), floats(b)
    is_vector = b.ndim == 1
    x = pinv(a, rcond) @ (b[:, None] if is_vector else b)
    return x[:, 0] if is_vector else x


def matrix_rank(x: Any, tol: float | None = None) -> Tensor:
    """Return the rank of matrices."""
    x = floats(x)
    return tl.linalg.matrix_rank(x) if tol is None else tl.linalg.matrix_rank(x, atol=tol, rtol=0.0)


def pinv(x: Any, rcond: float | None = None) -> Tensor:
    """Return the pseudoinverse."""
    x = floats(x)
    return tl.linalg.pinv(x) if rcond is None else tl.linalg.pinv(x, rtol=rcond)


LINALG: dict[str, Callable[..., Any]] = {
    **{name: _from_linalg(name) for name in ("det", "eig", "eigh", "inv")},
    **{
        function.__name__: function
        for function in (cholesky, cholesky_inverse, lstsq, matrix_rank, pinv, qr, solve, solve_triangular, svd)
    },
}
NUMPY = {"slogdet": _from_linalg("slogdet")}  # Keras has it in keras.ops.numpy
CORE = {"logdet": logdet}

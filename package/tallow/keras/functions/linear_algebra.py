"""Functions of matrices. Leading axes are batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.functions.operands import floats
from tallow.tensor import Tensor


def _of_linalg(name: str) -> Callable[..., Any]:
    function = getattr(tl.linalg, name)

    def apply(x: Any) -> Any:
        result = function(floats(x))
        return result if isinstance(result, Tensor) else tuple(result)

    return apply


def cholesky(x: Any, upper: bool = False) -> Tensor:
    lower = tl.linalg.cholesky(floats(x))
    return lower.mT if upper else lower


def cholesky_inverse(x: Any, upper: bool = False) -> Tensor:
    """The inverse of the matrix of which x is the triangular factor."""
    return tl.cholesky_inverse(floats(x), upper)


def logdet(x: Any) -> Tensor:
    """log |det x|, of positive definite matrices."""
    return tl.logdet(floats(x))


def qr(x: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode={mode!r}", mend="use 'reduced' or 'complete'")
    q, r = tl.linalg.qr(floats(x), mode)
    return q, r


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return tl.linalg.svdvals(floats(x))
    return tuple(tl.linalg.svd(floats(x), full_matrices))


def solve(a: Any, b: Any) -> Tensor:
    return tl.linalg.solve(floats(a), floats(b))


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Tensor:
    a, b = floats(a), floats(b)
    is_vector = b.ndim == a.ndim - 1
    x = tl.linalg.solve_triangular(a, b[..., None] if is_vector else b, upper=not lower)
    return x[..., 0] if is_vector else x


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Tensor:
    """The x for which |a x - b| is least; among several the shortest."""
    a, b = floats(a), floats(b)
    is_vector = b.ndim == 1
    x = pinv(a, rcond) @ (b[:, None] if is_vector else b)
    return x[:, 0] if is_vector else x


def matrix_rank(x: Any, tol: float | None = None) -> Tensor:
    x = floats(x)
    return tl.linalg.matrix_rank(x) if tol is None else tl.linalg.matrix_rank(x, atol=tol, rtol=0.0)


def pinv(x: Any, rcond: float | None = None) -> Tensor:
    x = floats(x)
    return tl.linalg.pinv(x) if rcond is None else tl.linalg.pinv(x, rtol=rcond)


LINALG: dict[str, Callable[..., Any]] = {
    **{name: _of_linalg(name) for name in ("det", "eig", "eigh", "inv")},
    **{
        function.__name__: function
        for function in (cholesky, cholesky_inverse, lstsq, matrix_rank, pinv, qr, solve, solve_triangular, svd)
    },
}
NUMPY = {"slogdet": _of_linalg("slogdet")}  # where Keras has it
CORE = {"logdet": logdet}

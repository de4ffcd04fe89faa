"""Matrix decompositions: Cholesky, QR, singular values, eigenvalues.

Gradients follow Giles 2008, "Collected matrix derivative results", and Walter & Lehmann 2013, arXiv:1009.6112 (QR).
Those of vectors exist only where the values differ from each other.
"""

from __future__ import annotations

from typing import Any

from tallow import return_types
from tallow.devices import array_module
from tallow.errors import ArgumentError, GraphError
from tallow.ops.complex_numbers import WHOLES
from tallow.ops.diagonals import diag_embed
from tallow.ops.joining import cat
from tallow.ops.linalg import adjoint, expect_matrices, expect_square, lapack, linalg_inv, linalg_solve, times
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op


def _diagonal(values: Array) -> Array:
    """Return matrices with `values` (..., N) on the diagonal."""
    return values[..., None] * array_module(values).eye(values.shape[-1], dtype=values.dtype)


def _half_diagonal(a: Array) -> Array:
    return a * (1 - 0.5 * array_module(a).eye(a.shape[-1], dtype=a.dtype))


def _differences(values: Array) -> Array:
    """Return E_ij = v_j - v_i, with ones on the diagonal, so that dividing by it is safe."""
    return values[..., None, :] - values[..., :, None] + array_module(values).eye(values.shape[-1], dtype=values.dtype)


def _half_diagonal_by_ops(a: Derived) -> Derived:
    return a - diag_embed.call(a.diagonal(0, -2, -1)) / 2


def _differences_by_ops(values: Derived) -> Derived:
    return values[..., None, :] - values[..., :, None] + diag_embed.call(values.new_ones(values.shape))


@op("linalg", refuses="half", batched="leading")
def linalg_cholesky(A: Array, *, upper: bool = False) -> Result:
    """Return the lower triangular L in A = L Lᴴ, or with `upper` its conjugate transpose; one triangle of A is read.

    dA = L⁻ᴴ Φ(Lᴴ g) L⁻¹ / 2, where Φ mirrors the lower triangle

    Shapes:  (..., N, N) -> the same
    Raises:  LinAlgError if A is not positive definite
    """
    name = "linalg.cholesky"
    expect_square(name, A)
    xp = array_module(A)
    factor = lapack(name, xp.linalg.cholesky, adjoint(A) if upper else A)
    value = adjoint(factor) if upper else factor

    def backward(g: Array) -> tuple[Array]:
        factor, lower_g = (adjoint(value), adjoint(g)) if upper else (value, g)
        phi = xp.tril(times(name, adjoint(factor), lower_g))
        inverse = xp.linalg.inv(factor)
        return (times(name, adjoint(inverse), (phi + adjoint(xp.tril(phi, -1))) / 2, inverse),)

    return value, backward


@linalg_cholesky.second(unneeded="name")
def _(g: Derived, *, value: Derived, upper: bool) -> Gradients:
    factor, g = (adjoint(value), adjoint(g)) if upper else (value, g)
    phi, inverse = (adjoint(factor) @ g).tril(), linalg_inv.call(factor)
    return [adjoint(inverse) @ ((phi + adjoint(phi.tril(-1))) / 2) @ inverse]


@op("linalg", refuses="half", result=return_types.linalg_qr, batched="itself")
def linalg_qr(A: Array, mode: str = "reduced") -> Result:
    """Return Q with orthonormal columns and the upper triangular R in A = Q R.

    Args:
        mode: "reduced", "complete" (a square Q), or "r" (R alone, Q is empty).

    Shapes:  (..., M, N) -> (..., M, K), (..., K, N) with K = min(M, N), or M if complete
    Raises:  ArgumentError; GraphError in backward, where A does not determine the factors
    """
    name = "linalg.qr"
    expect_matrices(name, A)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"{name}: mode={mode!r}", hint="use 'reduced', 'complete' or 'r'")
    xp = array_module(A)
    m, n = A.shape[-2:]
    if mode == "r":
        q, r = xp.empty(0, A.dtype), lapack(name, xp.linalg.qr, A, mode="r")
    else:
        q, r = lapack(name, xp.linalg.qr, A, mode=mode)

    def backward(gq: Array, gr: Array) -> tuple[Array]:
        _expect_gradient(mode, A)
        if m >= n:
            return (_qr_backward(q, r, gq, gr),)
        # The first m columns determine Q; the others are Q times the part to the right of R's triangle.
        right, gr_right = A[..., m:], gr[..., m:]
        of_left = _qr_backward(q, r[..., :m], gq + times(name, right, adjoint(gr_right)), gr[..., :m])
        return (xp.concatenate([of_left, times(name, q, gr_right)], axis=-1),)

    return (q, r), backward


def _expect_gradient(mode: str, A: Any) -> None:
    """Raise GraphError for a mode whose factors A does not determine."""
    if mode == "r" or (mode == "complete" and A.shape[-2] > A.shape[-1]):
        raise GraphError(f"linalg.qr: mode={mode!r} has no gradient for shape {A.shape}", hint="use mode='reduced'")


@linalg_qr.second(q="value0", r="value1", unneeded="name")
def _(gq: Derived, gr: Derived, *, A: Derived, q: Derived, r: Derived, mode: str, m: int, n: int) -> Gradients:
    _expect_gradient(mode, A)
    if m >= n:
        return [_of_tall(q, r, gq, gr)]
    right, gr_right = A[..., m:], gr[..., m:]
    of_left = _of_tall(q, r[..., :m], gq + right @ adjoint(gr_right), gr[..., :m])
    return [cat.call([of_left, q @ gr_right], -1)]


def _of_tall(q: Derived, r: Derived, gq: Derived, gr: Derived) -> Derived:
    """Return what `_qr_backward` does, for tensors."""
    half = _half_diagonal_by_ops((gr @ adjoint(r) - adjoint(q) @ gq).triu())
    total = gq + q @ (half + adjoint(half))
    return adjoint(linalg_solve.call(r, adjoint(total)))


def _qr_backward(q: Array, r: Array, gq: Array, gr: Array) -> Array:
    """Return dA = (gQ + Q sym(triu(gR Rᵀ - Qᵀ gQ))) R⁻ᵀ of tall or square matrices, where sym(X) = X + Xᵀ - diag X."""
    xp = array_module(q)
    half = _half_diagonal(xp.triu(times("linalg.qr", gr, adjoint(r)) - times("linalg.qr", adjoint(q), gq)))
    total = gq + times("linalg.qr", q, half + adjoint(half))
    return adjoint(xp.linalg.solve(r, adjoint(total)))


@op("linalg", refuses="half", result=return_types.linalg_svd, batched="leading")
def linalg_svd(A: Array, full_matrices: bool = True, *, driver: str | None = None) -> Result:
    """Return orthonormal U, the singular values S in descending order, and Vᵀ, in A = U diag(S) Vᵀ.

    Args:
        full_matrices: complete U and V to square matrices. The added columns have no gradient.
        driver: accepted for PyTorch compatibility, where it selects a CUDA algorithm; has no effect.

    Shapes:  (..., M, N) -> (..., M, K), (..., K), (..., K, N), K = min(M, N); (M, M) and (N, N) if full
    """
    name = "linalg.svd"
    expect_matrices(name, A)
    xp = array_module(A)
    full_u, s, full_vt = lapack(name, xp.linalg.svd, A, full_matrices=full_matrices)
    k = s.shape[-1]

    def backward(gu: Array, gs: Array, gvt: Array) -> tuple[Array]:
        u, vt = full_u[..., :k], full_vt[..., :k, :]
        gu, gv = gu[..., :k], adjoint(gvt[..., :k, :])
        v = adjoint(vt)
        gaps = _differences(s * s)
        u_gu, v_gv = times(name, adjoint(u), gu), times(name, vt, gv)
        turn_u = (u_gu - adjoint(u_gu)) / gaps * s[..., None, :]
        turn_v = s[..., :, None] * (v_gv - adjoint(v_gv)) / gaps
        inner = turn_u + turn_v + _diagonal(gs)
        if A.dtype.kind == "c":  # of the phases, by which U and V may be turned together
            inner = inner + _diagonal(1j * xp.diagonal(u_gu, axis1=-2, axis2=-1).imag / s)
        da = times(name, u, inner, vt)
        if A.shape[-2] > k:
            da = da + times(name, (gu - times(name, u, u_gu)) / s[..., None, :], vt)
        if A.shape[-1] > k:
            da = da + times(name, u, adjoint(gv - times(name, v, v_gv)) / s[..., :, None])
        return (da,)

    return (full_u, s, full_vt), backward


@linalg_svd.second(full_u="value0", s="value1", full_vt="value2", unneeded="name A")
def _(gu: Derived, gs: Derived, gvt: Derived, *, full_u: Derived, s: Derived, full_vt: Derived, k: int) -> Gradients:
    m, n = full_u.shape[-2], full_vt.shape[-1]
    u, vt = full_u[..., :k], full_vt[..., :k, :]
    gu, gv, v = gu[..., :k], adjoint(gvt[..., :k, :]), adjoint(vt)
    gaps, row, column = _differences_by_ops(s * s), s[..., None, :], s[..., :, None]
    u_gu, v_gv = adjoint(u) @ gu, vt @ gv
    turns = (u_gu - adjoint(u_gu)) / gaps * row + column * (v_gv - adjoint(v_gv)) / gaps
    inner = turns + diag_embed.call(gs)
    if u.is_complex():
        inner = inner + diag_embed.call(1j * u_gu.diagonal(0, -2, -1).imag / s)
    of_a = u @ inner @ vt
    if m > k:
        of_a = of_a + (gu - u @ u_gu) / row @ vt
    if n > k:
        of_a = of_a + u @ (adjoint(gv - v @ v_gv) / column)
    return [of_a]


@op("linalg", refuses="half", batched="leading")
def linalg_svdvals(A: Array, *, driver: str | None = None) -> Result:
    """Return the singular values in descending order. `driver` as in `linalg.svd`.

    dA = U diag(g) Vᵀ

    Shapes:  (..., M, N) -> (..., min(M, N))
    """
    name = "linalg.svdvals"
    expect_matrices(name, A)
    xp = array_module(A)

    def backward(g: Array) -> tuple[Array]:
        u, _, vt = xp.linalg.svd(A, full_matrices=False)
        return (times(name, u * g[..., None, :], vt),)

    return lapack(name, xp.linalg.svd, A, compute_uv=False), backward


@linalg_svdvals.definition(unneeded="name")
def _(*, A: Derived) -> Derived:
    return linalg_svd.call(A, False)[1]


def _triangle(name: str, UPLO: str) -> str:
    if UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO={UPLO!r}", hint="use 'L' or 'U', the triangle to read")
    return UPLO.upper()


@op("linalg", refuses="half", result=return_types.linalg_eigh, batched="leading")
def linalg_eigh(A: Array, UPLO: str = "L") -> Result:
    """Return the eigenvalues of symmetric matrices in ascending order, and orthonormal eigenvectors as columns.

    dA = V (skew(Vᵀ gV) / E + diag(g)) Vᵀ,  skew(X) = (X - Xᵀ) / 2,  E_ij = v_j - v_i

    dA is symmetric, as PyTorch's, although one triangle is read: a step along it keeps A symmetric.

    Args:
        UPLO: the triangle of A that is read, "L" or "U".

    Shapes:  (..., N, N) -> (..., N), (..., N, N)
    """
    name = "linalg.eigh"
    expect_square(name, A)
    xp = array_module(A)
    values, vectors = lapack(name, xp.linalg.eigh, A, _triangle(name, UPLO))

    def backward(g: Array, gv: Array) -> tuple[Array]:
        vt = adjoint(vectors)
        turn = times(name, vt, gv)
        inner = (turn - adjoint(turn)) / (2 * _differences(values)) + _diagonal(g)
        return (times(name, vectors, inner, vt),)

    return (values, vectors), backward


@linalg_eigh.second(values="value0", vectors="value1", unneeded="name")
def _(g: Derived, gv: Derived, *, values: Derived, vectors: Derived) -> Gradients:
    turn = adjoint(vectors) @ gv
    inner = (turn - adjoint(turn)) / (2 * _differences_by_ops(values)) + diag_embed.call(g)
    return [vectors @ inner @ adjoint(vectors)]


@op("linalg", refuses="half", batched="leading")
def linalg_eigvalsh(A: Array, UPLO: str = "L") -> Result:
    """Return the eigenvalues of symmetric matrices in ascending order; see `linalg.eigh`.

    Shapes:  (..., N, N) -> (..., N)
    """
    name = "linalg.eigvalsh"
    expect_square(name, A)
    xp = array_module(A)
    uplo = _triangle(name, UPLO)

    def backward(g: Array) -> tuple[Array]:
        _, vectors = xp.linalg.eigh(A, uplo)
        return (times(name, vectors * g[..., None, :], adjoint(vectors)),)

    return lapack(name, xp.linalg.eigvalsh, A, uplo), backward


@linalg_eigvalsh.definition(unneeded="name")
def _(*, A: Derived, uplo: str) -> Derived:
    return linalg_eigh.call(A, uplo)[0]


def _complex_eig(name: str, a: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors; NumPy's are real if all of them are, as LAPACK's."""
    values, vectors = lapack(name, array_module(a).linalg.eig, a)
    kind = WHOLES.get(values.dtype, values.dtype)
    return values.astype(kind, copy=False), vectors.astype(kind, copy=False)


@op("linalg", refuses="half", result=return_types.linalg_eig, batched="leading")
def linalg_eig(A: Array) -> Result:
    """Return the eigenvalues of square matrices, and eigenvectors of unit length as columns.

    Shapes:  (..., N, N) -> (..., N), (..., N, N)
    Dtypes:  complex, for real matrices too
    """
    name = "linalg.eig"
    expect_square(name, A)
    xp = array_module(A)
    values, vectors = _complex_eig(name, A)

    def backward(g: Array, gv: Array) -> tuple[Array]:
        vh = adjoint(vectors)
        v_gv = times(name, vh, gv)
        eye = xp.eye(values.shape[-1], dtype=values.dtype)
        lengthening = (v_gv * eye).sum(axis=-2, keepdims=True).real  # removed by the unit length of the vectors
        turn = (v_gv - times(name, vh, vectors) * lengthening) / _differences(values).conj()
        inner = turn * (1 - eye) + _diagonal(g)
        return (xp.linalg.solve(vh, times(name, inner, vh)),)

    return (values, vectors), backward


@linalg_eig.second(values="value0", vectors="value1", unneeded="name")
def _(g: Derived, gv: Derived, *, values: Derived, vectors: Derived) -> Gradients:
    vh = vectors.mH
    v_gv = vh @ gv
    lengthening = v_gv.diagonal(0, -2, -1).real.unsqueeze(-2)
    turn = (v_gv - vh @ vectors * lengthening) / _differences_by_ops(values).conj()
    inner = turn - diag_embed.call(turn.diagonal(0, -2, -1)) + diag_embed.call(g)
    return [linalg_solve.call(vh, inner @ vh)]


@op("linalg", refuses="half", batched="leading")
def linalg_eigvals(A: Array) -> Result:
    """Return the eigenvalues of square matrices; see `linalg.eig`.

    Shapes:  (..., N, N) -> (..., N)
    Dtypes:  complex, for real matrices too
    """
    name = "linalg.eigvals"
    expect_square(name, A)
    xp = array_module(A)
    values, vectors = _complex_eig(name, A)

    def backward(g: Array) -> tuple[Array]:
        of_columns = times(name, vectors * g.conj()[..., None, :], xp.linalg.inv(vectors))
        return (adjoint(of_columns).reshape(A.shape),)

    return values, backward


@linalg_eigvals.definition(unneeded="name vectors")
def _(*, A: Derived) -> Derived:
    return linalg_eig.call(A)[0]

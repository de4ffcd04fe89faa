"""The locally optimal block preconditioned conjugate gradient method for extreme eigenvalues of a symmetric matrix.

Source:  Knyazev 2001, "Toward the Optimal Preconditioned Eigensolver", SIAM J. Sci. Comput. 23(2), algorithm 5.1
"""

from __future__ import annotations

from tallow.core.tensor import Tensor
from tallow.dtypes import finfo
from tallow.errors import ArgumentError, ShapeError, UnsupportedError
from tallow.functions.sampling import randn
from tallow.ops.decomposition import linalg_eigh
from tallow.ops.joining import cat
from tallow.tape.modes import no_grad


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k greatest (or least) eigenvalues of A x = λ B x, and their vectors as columns, with XᵀBX = 1.

    Gradients flow to A. They need the other eigenvectors, so that they cost as much as `linalg.eigh`.

    Args:
        k: the number of eigenvalues; of the columns of X, or 1, by default.
        X: where the iteration starts; normal random numbers by default.
        n: the number of vectors that take part, at least k.
        iK: the preconditioner, an approximation of A⁻¹.
        niter: iterations at most; 1000 by default, as many as it takes below 0.
        tol: the residual, relative to the norms of A and B, at which a vector has converged; √eps by default.
        largest: True, the default, for the greatest eigenvalues.
        method: "ortho" or "basic"; both give the eigenvectors of the same subspaces.

    Shapes:  A, B, iK (..., M, M), X (..., M, n) -> (..., k), (..., M, k)
    Raises:  ShapeError unless A is square, ArgumentError unless M ≥ 3n; UnsupportedError
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"lobpcg: A must be square, got {tuple(A.shape)}")
    if method not in (None, "ortho", "basic"):
        raise ArgumentError(f"lobpcg: method={method!r}", hint="use 'ortho' or 'basic'")
    if tracker is not None or ortho_iparams or ortho_fparams or ortho_bparams:
        raise UnsupportedError("lobpcg: tracker and ortho_*params are not supported", hint="leave them out")
    if B is not None and B.requires_grad:
        raise UnsupportedError("lobpcg: no gradient flows to B", hint="pass B.detach()")
    width = (1 if X is None else X.shape[-1]) if k is None else k
    columns = width if n is None else n
    if A.shape[-1] < 3 * columns:
        raise ArgumentError(
            f"lobpcg: LOBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is smaller than "
            f"3 x the number of requested eigenpairs (={columns})",
            hint="use linalg.eigh",
        )
    with no_grad():
        start = randn(*A.shape[:-1], columns, dtype=A.dtype, device=A.device) if X is None else X
        limit = 1000 if niter is None else niter if niter >= 0 else None
        accuracy = finfo(A.dtype).eps ** 0.5 if tol is None else tol
        values, vectors = _iterate(A, B, start, iK, limit, accuracy, largest is not False)
        values, vectors = values[..., :width], vectors[..., :width]
    return _with_gradients(A, B, values, vectors) if A.requires_grad else (values, vectors)


def _times(matrix: Tensor | None, x: Tensor) -> Tensor:
    return x if matrix is None else matrix @ x


def _orthonormal(basis: Tensor, B: Tensor | None) -> Tensor:
    """Return a basis of the same span with SᵀBS = 1."""
    basis = basis.qr().Q
    return basis if B is None else (basis @ (basis.mT @ B @ basis).cholesky().mT.inverse())


def _iterate(
    A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, limit: int | None, tol: float, largest: bool
) -> tuple[Tensor, Tensor]:
    sign, width = (-1 if largest else 1), X.shape[-1]
    scale = A.norm(dim=(-2, -1), keepdim=True), 1 if B is None else B.norm(dim=(-2, -1), keepdim=True)
    basis, done = X, 0
    while True:
        basis = _orthonormal(basis, B)
        found, turn = linalg_eigh.call(sign * (basis.mT @ A @ basis))
        turn = turn[..., :width]
        X = basis @ turn
        values = sign * found[..., :width]
        residual = A @ X - _times(B, X) * values.unsqueeze(-2)
        size = residual.norm(dim=-2) / (X.norm(dim=-2) * (scale[0] + scale[1] * values.abs().unsqueeze(-2)).squeeze(-2))
        if bool((size < tol).all()) or done == limit:
            return values, X
        parts = [X, _times(iK, residual)]
        if done:  # the part of X that does not come from the last X
            parts.append(basis[..., width:] @ turn[..., width:, :])
        basis, done = cat.call(parts, -1), done + 1


def _with_gradients(A: Tensor, B: Tensor | None, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pairs with their dependence on A: dλ = xᵀ dA x and dx = -(A - λB)⁺ dA x, where XᵀBX = 1."""
    moved = A @ vectors - (A.detach() @ vectors)  # zero, with the gradient of A
    changes = (vectors * moved).sum(-2)
    identity = A.new_ones(A.shape[-1]).diag() if B is None else B
    columns = []
    for i in range(vectors.shape[-1]):
        shifted = A.detach() - values[..., i, None, None] * identity
        right = moved[..., i : i + 1] - _times(B, vectors[..., i : i + 1]) * changes[..., None, i : i + 1]
        step = shifted.pinverse(1e-10) @ right
        own = vectors[..., i : i + 1]
        columns.append(step - own * (own.mT @ _times(B, step)))
    return values + changes, vectors - cat.call(columns, -1)

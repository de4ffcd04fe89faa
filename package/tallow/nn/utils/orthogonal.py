"""The parametrization of orthogonal weights, `tallow.nn.utils.parametrizations.orthogonal`.

Letters: N rows and K columns of a tall weight, N ≥ K; a wide one is transposed.
"""

from __future__ import annotations

from typing import TypeVar

from tallow import dtypes
from tallow.autograd import no_grad
from tallow.core.apply import apply
from tallow.core.creation import eye
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.errors import ArgumentError, UnsupportedError
from tallow.functions.linalg import matrix_exp
from tallow.functions.sampling import randn
from tallow.nn.module import Module
from tallow.nn.utils.parametrize import register_parametrization
from tallow.ops.decomposition import linalg_qr
from tallow.ops.joining import cat
from tallow.ops.linalg import linalg_solve

M = TypeVar("M", bound=Module)
MAPS = ("matrix_exp", "cayley", "householder")


def _identity(like: Tensor, n: int, k: int) -> Tensor:
    return eye(n, k, dtype=like.dtype, device=like.device)


def _householder_product(vectors: Tensor) -> Tensor:
    """Return the first columns of the product of the reflections I - τ v vᵀ, v a column plus a unit vector.

    Shapes:  vectors (..., N, K), zero on and above the diagonal -> the same
    """
    n, k = vectors.shape[-2:]
    tau = 2.0 / (1.0 + vectors.square().sum(-2))
    v = vectors + _identity(vectors, n, k)
    product = _identity(vectors, n, k).expand(vectors.shape)
    for i in reversed(range(k)):
        column = v[..., i : i + 1]
        product = product - tau[..., i, None, None] * column * (column.mT @ product)
    return product


def _orthogonalized(a: Tensor) -> Tensor:
    """Return Q of the decomposition Q R with a positive diagonal of R."""
    q, r = apply(linalg_qr, a)
    return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


class _Orthogonal(Module):
    """Maps any weight to one with orthonormal columns or rows, whichever are fewer."""

    def __init__(self, shape: tuple[int, ...], orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape, self.orthogonal_map = shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        is_wide = x.shape[-2] < x.shape[-1]
        x = x.mT if is_wide else x
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            # The diagonal holds signs, which have no gradient.
            q = _householder_product(x.tril(-1)) * x.detach().diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            lower = x.tril()
            if n != k:
                lower = apply(cat, [lower, x.new_zeros((*x.shape[:-1], n - k))], -1)
            skew = lower - lower.mT
            if self.orthogonal_map == "matrix_exp":
                q = matrix_exp(skew)
            else:
                one = _identity(x, n, n)
                q = apply(linalg_solve, one - skew / 2, one + skew / 2)
            q = q[..., :k]
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if is_wide else q

    @no_grad()
    def right_inverse(self, weight: Tensor) -> Tensor:
        """Return the original of an orthogonal weight; of another, the original of the nearest by decomposition."""
        if weight.shape != self.shape:
            raise ArgumentError(f"orthogonal: expected a weight of shape {self.shape}, got {tuple(weight.shape)}")
        is_wide = weight.shape[-2] < weight.shape[-1]
        q = weight.mT if is_wide else weight
        n, k = q.shape[-2:]
        if "base" in self._buffers:
            if n != k:
                noise = randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)
                q = _orthogonalized(apply(cat, [q, noise], -1))
            elif not (q.mT @ q).allclose(_identity(q, n, n), atol=10 * n * dtypes.finfo(q.dtype).eps):
                q = _orthogonalized(q)
            self.base = q.clone()
            return -_identity(weight, *weight.shape[-2:]).expand(weight.shape).contiguous()
        if self.orthogonal_map != "householder":
            raise UnsupportedError(
                f"orthogonal: {self.orthogonal_map!r} cannot be assigned to without use_trivialization",
                hint="pass use_trivialization=True, or orthogonal_map='householder'",
            )
        reflections, tau = array_module(q.array).linalg.qr(q.array, mode="raw")
        original = wrap(reflections.swapaxes(-1, -2).copy())
        signs = original.diagonal(dim1=-2, dim2=-1)
        signs.copy_(signs.sign().where(wrap(tau) != 0, -signs.sign()))  # no reflection keeps the sign
        return original.mT if is_wide else original


def orthogonal(
    module: M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> M:
    """Make the columns of a weight orthonormal, or its rows where they are fewer.

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square weights and the last
            for others.
        use_trivialization: keep the current weight as a base that the map multiplies, which needs a buffer of N × N.

    Raises:  ArgumentError for a weight with fewer than 2 dims, or an unknown map
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor) or weight.ndim < 2:
        raise ArgumentError(f"orthogonal: {type(module).__name__} has no parameter {name!r} of at least 2 dims")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in MAPS:
        raise ArgumentError(f"orthogonal: orthogonal_map={orthogonal_map!r}", hint=f"use one of {', '.join(MAPS)}")
    register_parametrization(module, name, _Orthogonal(weight.shape, orthogonal_map, use_trivialization), unsafe=True)
    return module

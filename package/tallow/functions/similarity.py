"""Lengths, distances and angles of vectors along a dim."""

from __future__ import annotations

from tallow.offer import offer
from tallow.tensor import Tensor


@offer("F")
def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """x / max(‖x‖_p, eps), the norm taken along `dim`."""
    value = input / input.norm(p, dim, keepdim=True).clamp_min(eps)
    return value if out is None else out.copy_(value)


@offer("tl F")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`.

    Shapes:  x1, x2 broadcast to each other -> the same without `dim`
    """
    return (normalize(x1, 2.0, dim, eps) * normalize(x2, 2.0, dim, eps)).sum(dim)


@offer("tl F")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """‖x1 - x2 + eps‖_p along the last dim.

    Shapes:  x1 (..., D), x2 (..., D), broadcast -> (...), or (..., 1) with keepdim
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)

"""Norms, distances and angles of vectors along a dim."""

from __future__ import annotations

from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import DtypeError
from tallow.functions.inspection import result_type
from tallow.functions.shape import broadcast_tensors


@public("F")
def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Compute x / max(‖x‖_p, eps), with the norm along `dim`."""
    value = input / input.norm(p, dim, keepdim=True).clamp_min(eps)
    return value if out is None else out.copy_(value)


@public("tl F", checked=True)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`. The bound does not affect the gradient.

    Shapes:  x1, x2 broadcast to each other, along `dim` too -> the same without `dim`
    Dtypes:  any float, or one and integers
    Raises:  DtypeError
    """
    common = result_type(x1, x2)
    if not common.is_floating_point:
        raise DtypeError(f"cosine_similarity: expected floating point tensors, got {x1.dtype} and {x2.dtype}")
    x1, x2 = x1.to(common), x2.to(common)
    if x1.shape != x2.shape:  # tensors of one shape may have any in an exported program
        x1, x2 = broadcast_tensors(x1, x2)
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    norm = x.norm(2.0, dim, keepdim=True)
    fixed = norm.detach()
    return x / (norm + (fixed.clamp_min(eps) - fixed))


@public("tl F", checked=True)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Compute ‖x1 - x2 + eps‖_p along the last dim.

    Shapes:  x1 (..., D), x2 (..., D), broadcast -> (...), or (..., 1) with keepdim
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)

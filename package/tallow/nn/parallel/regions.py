"""Differentiable communication between tensor-parallel layers: copy, reduce and gather over a group.

Source:  Shoeybi et al. 2019, arXiv:1909.08053, section 3: its f is `copy_to_group`, its g `reduce_from_group`
"""

from __future__ import annotations

from typing import Any

from tallow.autograd.function import Function
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.distributed import ProcessGroup, all_gather_into_tensor, all_reduce


class Share:
    """The rows of `total` that belong to this rank of a group: equal parts, except that the last may be smaller."""

    def __init__(self, total: int, group: ProcessGroup) -> None:
        self.total = total
        self.most = -(-total // group.size())
        self.start = min(group.rank() * self.most, total)
        self.stop = min(self.start + self.most, total)

    @property
    def size(self) -> int:
        """The number of rows of this rank."""
        return self.stop - self.start


class _Copy(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _sum(grad, ctx.group), None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        return _sum(x, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, share: Share, group: ProcessGroup) -> Tensor:
        ctx.share = share
        array = x.array
        xp = array_module(array)
        local = xp.zeros((share.most, *array.shape[:-1]), array.dtype)  # all_gather needs parts of equal size
        local[: share.size] = xp.moveaxis(array, -1, 0)
        gathered = wrap(xp.empty((group.size() * share.most, *array.shape[:-1]), array.dtype))
        all_gather_into_tensor(gathered, wrap(local), group)
        return wrap(xp.ascontiguousarray(xp.moveaxis(gathered.array[: share.total], 0, -1)))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad[..., ctx.share.start : ctx.share.stop], None, None


def copy_to_group(x: Tensor, group: ProcessGroup) -> Tensor:
    """Return x unchanged; backward sums the gradients of all ranks."""
    return _Copy.apply(x, group)


def reduce_from_group(x: Tensor, group: ProcessGroup) -> Tensor:
    """Return the sum of x over the ranks, in every rank; backward passes the gradient unchanged."""
    return _Reduce.apply(x, group)


def gather_from_group(x: Tensor, share: Share, group: ProcessGroup) -> Tensor:
    """Concatenate the parts of all ranks along the last dimension, in every rank; backward takes the rank's part.

    Shapes:  x (..., share.size) -> (..., share.total)
    """
    return _Gather.apply(x, share, group)


def _sum(x: Tensor, group: ProcessGroup) -> Tensor:
    total = wrap(x.array.copy())
    all_reduce(total, group=group)
    return total

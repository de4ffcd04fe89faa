"""Where tensor-parallel layers meet: what is the same in every process of a group, and what each has its part of.

Each of these does in backward what belongs to what it does in forward.

Source:  Shoeybi et al. 2019, arXiv:1909.08053, section 3: its f is `copy_to_group`, its g `reduce_from_group`
"""

from __future__ import annotations

from typing import Any

from tallow.autograd.function import Function
from tallow.devices import array_module
from tallow.distributed import ProcessGroup, all_gather_into_tensor, all_reduce
from tallow.tensor import Tensor, wrap


class Share:
    """The part of `total` rows that a rank of a group has: as many as the others, but that the last may have fewer."""

    def __init__(self, total: int, group: ProcessGroup) -> None:
        self.total = total
        self.most = -(-total // group.size())
        self.start = min(group.rank() * self.most, total)
        self.stop = min(self.start + self.most, total)

    @property
    def size(self) -> int:
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
        mine = xp.zeros((share.most, *array.shape[:-1]), array.dtype)  # ranks' parts have one size on their way
        mine[: share.size] = xp.moveaxis(array, -1, 0)
        everybodys = wrap(xp.empty((group.size() * share.most, *array.shape[:-1]), array.dtype))
        all_gather_into_tensor(everybodys, wrap(mine), group)
        return wrap(xp.ascontiguousarray(xp.moveaxis(everybodys.array[: share.total], 0, -1)))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad[..., ctx.share.start : ctx.share.stop], None, None


def copy_to_group(x: Tensor, group: ProcessGroup) -> Tensor:
    """x as it is; its gradient is the sum of those that the ranks' parts send back."""
    return _Copy.apply(x, group)


def reduce_from_group(x: Tensor, group: ProcessGroup) -> Tensor:
    """The sum of the ranks' x, in every rank."""
    return _Reduce.apply(x, group)


def gather_from_group(x: Tensor, share: Share, group: ProcessGroup) -> Tensor:
    """The ranks' parts of the last axis, put together in every rank.

    Shapes:  x (..., share.size) -> (..., share.total)
    """
    return _Gather.apply(x, share, group)


def _sum(x: Tensor, group: ProcessGroup) -> Tensor:
    total = wrap(x.array.copy())
    all_reduce(total, group=group)
    return total

"""torch.autograd.function: names of functions with their own gradients that only programs for PyTorch need."""

from __future__ import annotations

from tallow.autograd.function import Function

__all__ = ["InplaceFunction"]


class InplaceFunction(Function):
    """The base class of functions that may write into their input; `ctx.mark_dirty` in `forward` says that they do.

    Args:
        inplace: kept as an attribute of the object.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

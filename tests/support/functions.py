"""Functions of autograd that several tests call."""

from __future__ import annotations

from typing import Any

import tallow as tl


class Cube(tl.autograd.Function):
    """x³, with its gradient from the saved x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad

"""Rprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.optim.moments import begin, count
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative


class Rprop(Optimizer):
    """Steps along the sign of the gradient, with a separate step size for each element.

    s grows by etas[1] where the sign stayed, and shrinks by etas[0] where it changed, within step_sizes
    p = p - sign(g) · s  where the sign stayed; where it changed, p does not move

    Args:    as torch.optim.Rprop; `capturable` and `foreach` are accepted and have no effect

    Source:  Riedmiller & Braun 1993, "A direct adaptive method for faster backpropagation learning"
    """

    MOMENTS = ("prev", "step_size")
    REQUIRED = ("step", *MOMENTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ArgumentError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        xp = array_module(param)
        if not state:
            begin(state, param, *self.MOMENTS)
            state["step_size"][...] = float(group["lr"])
        count(state)
        grad = -grad if group["maximize"] else grad
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        agreement = grad * state["prev"]
        size = state["step_size"]
        size *= xp.where(agreement > 0, grow, xp.where(agreement < 0, shrink, 1.0))
        xp.clip(size, smallest, largest, out=size)
        grad = xp.where(agreement < 0, 0, grad).astype(grad.dtype, copy=False)
        param -= xp.sign(grad) * size
        state["prev"][...] = grad

"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.optim.moments import begin, count, descent
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative


class Adadelta(Optimizer):
    """Adapt the step of each element by the ratio of two running root mean squares, of past steps and of gradients.

    g = ∇ + weight_decay · p
    v = rho · v + (1 - rho) · g²
    d = √(u + eps) / √(v + eps) · g
    u = rho · u + (1 - rho) · d²
    p = p - lr · d

    Args:    as torch.optim.Adadelta; `foreach` and `capturable` are accepted and have no effect

    Source:  Zeiler 2012, arXiv:1212.5701, algorithm 1
    """

    MOMENTS = ("square_avg", "acc_delta")
    REQUIRED = ("step", *MOMENTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        if rho > 1:
            raise ArgumentError(f"Invalid rho value: {rho}", hint="use a rho from 0 to 1")
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
        count(state)
        xp = array_module(param)
        rho, eps = group["rho"], group["eps"]
        grad = descent(param, grad, group)
        squares, steps = state["square_avg"], state["acc_delta"]
        squares *= rho
        squares += (1 - rho) * grad * grad
        change = xp.sqrt(steps + eps)
        change /= xp.sqrt(squares + eps)
        change *= grad
        steps *= rho
        steps += (1 - rho) * change * change
        param -= float(group["lr"]) * change

"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.optim.moments import begin, count, descent, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


class Adamax(Optimizer):
    """Adam with a decaying maximum of the gradient instead of the root mean square.

    g = ∇ + weight_decay · p
    m = beta1 · m + (1 - beta1) · g
    u = max(beta2 · u, |g| + eps)
    p = p - lr / (1 - beta1ᵗ) · m / u

    Args:    as torch.optim.Adamax; `foreach` and `capturable` are accepted and have no effect

    Source:  Kingma & Ba 2014, arXiv:1412.6980, algorithm 2
    """

    MOMENTS = ("exp_avg", "exp_inf")
    REQUIRED = ("step", *MOMENTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
        step = count(state)
        xp = array_module(param)
        beta1, beta2 = map(float, group["betas"])
        grad = descent(param, grad, group)
        mean, largest = state["exp_avg"], state["exp_inf"]
        move_average(mean, grad, 1 - beta1)
        size = xp.abs(grad)
        size += group["eps"]
        largest *= beta2
        xp.maximum(largest, size, out=largest)
        change = mean / largest
        change *= float(group["lr"]) / (1 - beta1**step)
        param -= change

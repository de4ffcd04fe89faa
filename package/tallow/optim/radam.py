"""RAdam."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.optim.moments import begin, count, descent, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


class RAdam(Optimizer):
    """Adam that uses plain momentum until the variance of its adaptive rate is tractable, and then rectifies it.

    g = ∇ + weight_decay · p,  or first p = p - lr · weight_decay · p if decoupled
    m = beta1 · m + (1 - beta1) · g
    v = beta2 · v + (1 - beta2) · g²
    ρ = ρ∞ - 2t · beta2ᵗ / (1 - beta2ᵗ),  ρ∞ = 2 / (1 - beta2) - 1
    r = √((ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ))
    p = p - lr · m / (1 - beta1ᵗ) · (r · √(1 - beta2ᵗ) / (√v + eps) if ρ > 5 else 1)

    Args:    as torch.optim.RAdam; `foreach` and `capturable` are accepted and have no effect

    Source:  Liu et al. 2019, arXiv:1908.03265, algorithm 2
    """

    MOMENTS = ("exp_avg", "exp_avg_sq")
    REQUIRED = ("step", *MOMENTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
        step = count(state)
        beta1, beta2 = map(float, group["betas"])
        lr = float(group["lr"])
        mean, squares = state["exp_avg"], state["exp_avg_sq"]
        grad = descent(param, grad, group, lr)
        move_average(mean, grad, 1 - beta1)
        squares *= beta2
        squares += (1 - beta2) * grad * grad
        change = mean * (lr / (1 - beta1**step))
        bias_correction = 1 - beta2**step
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * beta2**step / bias_correction
        if rho > 5:
            rectification = sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
            denominator = array_module(param).sqrt(squares)
            denominator += group["eps"]
            change *= rectification * sqrt(bias_correction)
            change /= denominator
        param -= change

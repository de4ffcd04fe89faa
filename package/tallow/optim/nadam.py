"""NAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.optim.moments import begin, count, descent, move_average, scalar
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


class NAdam(Optimizer):
    """Adam with Nesterov momentum, on its own momentum schedule.

    g  = ∇ + weight_decay · p,  or first p = p - lr · weight_decay · p if decoupled
    μₜ = beta1 · (1 - 0.96^(t · momentum_decay) / 2)
    m  = beta1 · m + (1 - beta1) · g
    v  = beta2 · v + (1 - beta2) · g²
    p  = p - lr · ((1 - μₜ) / (1 - μ₁…μₜ) · g + μₜ₊₁ / (1 - μ₁…μₜ₊₁) · m) / (√(v / (1 - beta2ᵗ)) + eps)

    Args:    as torch.optim.NAdam; `foreach` and `capturable` are accepted and have no effect

    Source:  Dozat 2016, "Incorporating Nesterov momentum into Adam"
    """

    MOMENTS = ("exp_avg", "exp_avg_sq")
    SCALARS = ("step", "mu_product")
    REQUIRED = (*SCALARS, *MOMENTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
            state["mu_product"] = scalar(1.0)
        step = count(state)
        beta1, beta2 = map(float, group["betas"])
        lr = float(group["lr"])
        mean, squares, mu_product = state["exp_avg"], state["exp_avg_sq"], state["mu_product"]
        grad = descent(param, grad, group, lr)
        mu, mu_next = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        mu_product *= mu
        product = mu_product.item()
        move_average(mean, grad, 1 - beta1)
        squares *= beta2
        squares += (1 - beta2) * grad * grad
        denominator = array_module(param).sqrt(squares / (1 - beta2**step))
        denominator += group["eps"]
        change = grad * (lr * (1 - mu) / (1 - product))
        change += mean * (lr * mu_next / (1 - product * mu_next))
        change /= denominator
        param -= change

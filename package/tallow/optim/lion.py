"""Lion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.optim.moments import move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


class Lion(Optimizer):
    """Steps of equal size along the sign of a momentum.

    p = p - lr · weight_decay · p
    p = p - lr · sign(beta1 · m + (1 - beta1) · ∇)
    m = beta2 · m + (1 - beta2) · ∇

    Args:    lr, betas, weight_decay: use about a tenth of AdamW's lr and ten times its weight_decay
        maximize: maximize the objective instead

    Source:  Chen et al. 2023, arXiv:2302.06675, algorithm 2. PyTorch has no Lion
    """

    MOMENTS = ("exp_avg",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        check_not_negative(lr=lr, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize})

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        xp = array_module(param)
        mean = state.get("exp_avg")
        if mean is None:
            mean = state["exp_avg"] = xp.zeros_like(param)
        beta1, beta2 = map(float, group["betas"])
        lr = float(group["lr"])
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"]:
            param *= 1 - lr * group["weight_decay"]
        change = mean * beta1
        change += (1 - beta1) * grad
        param -= lr * xp.sign(change)
        move_average(mean, grad, 1 - beta2)

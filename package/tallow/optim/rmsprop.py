"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.optim.moments import begin, count, descent, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative


class RMSprop(Optimizer):
    """Divide the gradient by its running root mean square.

    g = ∇ + weight_decay · p
    v = alpha · v + (1 - alpha) · g²
    d = g / (√v + eps),  or  g / (√(v - a²) + eps) if centered, with a the running average of g
    p = p - lr · d,  or with momentum  b = momentum · b + d,  p = p - lr · b

    Args:    as torch.optim.RMSprop; `capturable` and `foreach` are accepted and have no effect

    Source:  Hinton 2012, "Neural networks for machine learning", lecture 6; centered: Graves 2013, arXiv:1308.0850
    """

    MOMENTS = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _required_state(self, group: Group) -> tuple[str, ...]:
        is_used = {"square_avg": True, "momentum_buffer": group["momentum"], "grad_avg": group["centered"]}
        return ("step", *(name for name in self.MOMENTS if is_used[name]))

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        momentum, centered, alpha = group["momentum"], group["centered"], group["alpha"]
        if not state:
            begin(state, param, *self._required_state(group)[1:])
        count(state)
        grad = descent(param, grad, group)
        average = state["square_avg"]
        average *= alpha
        average += (1 - alpha) * grad * grad
        if centered:
            mean = state["grad_avg"]
            move_average(mean, grad, 1 - alpha)
            average = average - mean * mean
        denominator = array_module(param).sqrt(average)
        denominator += group["eps"]
        change = grad / denominator
        if momentum:
            buffer = state["momentum_buffer"]
            buffer *= momentum
            buffer += change
            change = buffer
        param -= float(group["lr"]) * change

"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import GraphError
from tallow.optim.moments import begin, count, descent
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative


class Adagrad(Optimizer):
    """Divide the gradient by the root of the sum of all squared gradients.

    g = ∇ + weight_decay · p
    s = s + g²
    p = p - lr / (1 + (t - 1) · lr_decay) · g / (√s + eps)

    Args:    as torch.optim.Adagrad; `foreach` and `fused` are accepted and have no effect

    Source:  Duchi, Hazan & Singer 2011, "Adaptive subgradient methods"
    """

    MOMENTS = ("sum",)
    REQUIRED = ("step", *MOMENTS)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative(
            lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )  # fmt: skip
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update_rows(self, param: Array, rows: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if group["weight_decay"]:
            raise GraphError("weight_decay option is not compatible with sparse gradients", hint="weight_decay=0")
        if not state:
            self._begin(state, param, group)
        whole, total = param[rows], state["sum"][rows]
        self.update(whole, grad, state | {"sum": total}, group)
        param[rows], state["sum"][rows] = whole, total

    @staticmethod
    def _begin(state: dict[str, Array], param: Array, group: Group) -> None:
        begin(state, param, "sum")
        state["sum"][...] = group["initial_accumulator_value"]

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            self._begin(state, param, group)
        step = count(state)
        grad = descent(param, grad, group)
        total = state["sum"]
        total += grad * grad
        denominator = array_module(param).sqrt(total)
        denominator += group["eps"]
        change = grad / denominator
        change *= float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        param -= change

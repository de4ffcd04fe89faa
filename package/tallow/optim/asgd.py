"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.dtypes import Array
from tallow.optim.moments import begin, count, descent, move_average, scalar
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative


class ASGD(Optimizer):
    """Gradient descent with a decaying step size and a running average of the parameters.

    g  = ∇ + weight_decay · p
    p  = (1 - lambd · eta) · p - eta · g
    ax = ax + mu · (p - ax)
    eta = lr / (1 + lambd · lr · t)^alpha          lr in the first step
    mu  = 1 / max(1, t - t0)                       1 in the first step

    The average is `state[p]["ax"]`; until step `t0` it is a copy of the parameter.

    Args:    as torch.optim.ASGD; `foreach` and `capturable` are accepted and have no effect

    Source:  Polyak & Juditsky 1992, "Acceleration of stochastic approximation by averaging"
    """

    MOMENTS = ("ax",)
    SCALARS = ("step", "eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        lr, lambd = float(group["lr"]), group["lambd"]
        if not state:
            begin(state, param, *self.MOMENTS)
            state["eta"], state["mu"] = scalar(lr), scalar(1.0)
        step = count(state)
        eta, mu = state["eta"].item(), state["mu"].item()
        grad = descent(param, grad, group)
        param *= 1 - lambd * eta
        param -= eta * grad
        if mu == 1:
            state["ax"][...] = param
        else:
            move_average(state["ax"], param, mu)
        state["eta"][...] = lr / (1 + lambd * lr * step) ** group["alpha"]
        state["mu"][...] = 1 / max(1.0, step - group["t0"])

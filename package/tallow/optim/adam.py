"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from tallow import kernels
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow.optim.moments import begin, count, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


@kernel("adam_step", "array")
def adam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None,
    beta1: float, beta2: float, step_size: float, scale: float, eps: float, decay: float, shrink: float, maximize: bool,
) -> None:  # fmt: skip
    """In place on all arrays but `grad`; they have one shape and dtype.

    p = shrink · p
    g = ±grad + decay · p
    m = m + (1 - beta1) · (g - m)
    v = beta2 · v + (1 - beta2) · g²
    p = p - step_size · m / (√v / scale + eps)

    max_exp_avg_sq, if it is given, keeps the largest v and stands in its place in the last line.
    """
    xp = array_module(param)
    if maximize:
        grad = -grad
    if shrink != 1:
        param *= shrink
    if decay:
        grad = grad + decay * param
    move_average(exp_avg, grad, 1 - beta1)
    square = grad * grad
    square *= 1 - beta2
    exp_avg_sq *= beta2
    exp_avg_sq += square
    if max_exp_avg_sq is None:
        denominator = xp.sqrt(exp_avg_sq)
    else:
        xp.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
        denominator = xp.sqrt(max_exp_avg_sq)
    denominator /= scale
    denominator += eps
    change = exp_avg / denominator
    change *= step_size
    param -= change


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and of its square.

    g = ∇ + weight_decay · p
    m = beta1 · m + (1 - beta1) · g
    v = beta2 · v + (1 - beta2) · g²
    p = p - lr · (m / (1 - beta1ᵗ)) / (√(v / (1 - beta2ᵗ)) + eps)

    Args:    as torch.optim.Adam; `foreach`, `capturable` and `fused` are taken and change nothing
        amsgrad: take the largest v so far
        decoupled_weight_decay: as AdamW
    Source:  Kingma & Ba 2014, arXiv:1412.6980, algorithm 1; Reddi et al. 2018, arXiv:1904.09237 for amsgrad
    """

    MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        amsgrad = group["amsgrad"]
        if not state:
            begin(state, param, *(self.MOMENTS if amsgrad else self.MOMENTS[:2]))
        beta1, beta2 = map(float, group["betas"])
        lr, weight_decay = float(group["lr"]), group["weight_decay"]
        step = count(state)
        decay, shrink = (0.0, 1 - lr * weight_decay) if group["decoupled_weight_decay"] else (weight_decay, 1.0)
        kernels.run(
            "adam_step", param, grad, state["exp_avg"], state["exp_avg_sq"],
            state["max_exp_avg_sq"] if amsgrad else None,
            beta1, beta2, lr / (1 - beta1**step), sqrt(1 - beta2**step), group["eps"], decay, shrink, group["maximize"],
        )  # fmt: skip


class AdamW(Adam):
    """Adam with the weights pulled towards zero directly, not through the gradient.

    p = p - lr · weight_decay · p, then as Adam

    Args:    as torch.optim.AdamW; `foreach`, `capturable` and `fused` are taken and change nothing
    Source:  Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also after loading the state of an Adam

"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

import numpy as np

from tallow import kernels
from tallow.devices import array_module, device_of, device_type_of, move
from tallow.dtypes import HALVES, Array, cast, dtype_of, widen
from tallow.kernels import kernel
from tallow.optim.moments import begin, count, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative
from tallow.tensor import Tensor, wrap


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


@kernel("adam_steps", "array")
def adam_steps(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    max_exp_avg_sqs: list[Array] | None, steps: float | list[Array], lr: float | Array, beta1: float, beta2: float,
    eps: float, weight_decay: float, decoupled: bool, maximize: bool,
) -> None:  # fmt: skip
    """`adam_step` for many parameters of one dtype.

    Args:  steps: how many there have been, with this one; or a number on the device for each, which is counted up first
    """
    for i, param in enumerate(params):
        step = steps
        if isinstance(step, list):
            step = step[i]
            step += 1
        root = sqrt if isinstance(step, float) else array_module(step).sqrt
        top = None if max_exp_avg_sqs is None else max_exp_avg_sqs[i]
        written = [param, exp_avgs[i], exp_avg_sqs[i], top]
        wide = [None if a is None else widen(a) for a in written] if param.dtype in HALVES else written
        p, m, v, top = wide
        kernels.run(
            "adam_step", p, widen(grads[i]), m, v, top, beta1, beta2, lr / (1 - beta1**step), root(1 - beta2**step),
            eps, 0.0 if decoupled else weight_decay, 1 - lr * weight_decay if decoupled else 1.0, maximize,
        )  # fmt: skip
        if wide is not written:
            for half, array in zip(written, wide, strict=True):
                if half is not None:
                    half[...] = cast(array, dtype_of(half))


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and of its square.

    g = ∇ + weight_decay · p
    m = beta1 · m + (1 - beta1) · g
    v = beta2 · v + (1 - beta2) · g²
    p = p - lr · (m / (1 - beta1ᵗ)) / (√(v / (1 - beta2ᵗ)) + eps)

    On a GPU all parameters of a group take one launch.

    Args:    as torch.optim.Adam; `foreach` and `fused` are taken and change nothing
        capturable: count the steps on the device, so that a CUDA graph of a step can be replayed; `lr` may be there too
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

    def _required_state(self, group: Group) -> tuple[str, ...]:
        return ("step", *(self.MOMENTS if group["amsgrad"] else self.MOMENTS[:2]))

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        self.update_many([param], [grad], [state], group)

    def update_many(
        self, params: list[Array], grads: list[Array], states: list[dict[str, Array]], group: Group
    ) -> None:
        amsgrad, lr = group["amsgrad"], group["lr"]
        names = self.MOMENTS if amsgrad else self.MOMENTS[:2]
        alike: dict[float | None, list[int]] = {}  # by the count of steps; None where the device counts
        for i, (param, state) in enumerate(zip(params, states, strict=True)):
            if not state:
                begin(state, param, *names)
                if group["capturable"]:
                    state["step"] = move(state["step"], device_of(param))
            alike.setdefault(count(state) if type(state["step"]) is np.ndarray else None, []).append(i)
        is_there = isinstance(lr, Tensor) and type(lr.array) is type(params[0]) and None in alike
        lr = lr.array if is_there else float(lr)
        beta1, beta2 = map(float, group["betas"])
        for step, places in alike.items():
            moments = [[states[i][name] for i in places] for name in names]
            args = (
                [params[i] for i in places], [grads[i] for i in places], moments[0], moments[1],
                moments[2] if amsgrad else None, [states[i]["step"] for i in places] if step is None else step,
                lr, beta1, beta2, group["eps"], group["weight_decay"], group["decoupled_weight_decay"],
                group["maximize"],
            )  # fmt: skip
            kernels.pick("adam_steps", device_type_of(params[0]), *args).fn(*args)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for param in group["params"] if group.get("capturable") else ():
                if param in self.state:
                    step = self.state[param]["step"]
                    self.state[param]["step"] = wrap(move(step.array, param.device))


class AdamW(Adam):
    """Adam with the weights pulled towards zero directly, not through the gradient.

    p = p - lr · weight_decay · p, then as Adam

    Args:    as Adam
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

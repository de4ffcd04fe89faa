"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

import numpy as np

from tallow import kernels
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module, device_of, device_type_of, move
from tallow.dtypes import HALVES, Array, cast, dtype_of, widen
from tallow.kernels import kernel
from tallow.optim.moments import begin, count, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_betas, check_not_negative


@kernel("adam_step", "array")
def adam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None,
    beta1: float, beta2: float, step_size: float, scale: float, eps: float, decay: float, shrink: float, maximize: bool,
) -> None:  # fmt: skip
    """Update one parameter and its moments in place; all arrays have the same shape and dtype.

    p = shrink · p
    g = ±grad + decay · p
    m = m + (1 - beta1) · (g - m)
    v = beta2 · v + (1 - beta2) · g²
    p = p - step_size · m / (√v / scale + eps)

    `max_exp_avg_sq`, if it is not None, keeps the maximum of v and replaces v in the last line.
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
    """Apply `adam_step` to many parameters of the same dtype.

    Args:  steps: the number of steps including this one; or an array on the device per parameter, which is incremented
    """
    for i, param in enumerate(params):
        step = steps
        if isinstance(step, list):
            step = step[i]
            step += 1
        root = sqrt if isinstance(step, float) else array_module(step).sqrt
        max_v = None if max_exp_avg_sqs is None else max_exp_avg_sqs[i]
        arrays = [param, exp_avgs[i], exp_avg_sqs[i], max_v]
        wide = [None if a is None else widen(a) for a in arrays] if param.dtype in HALVES else arrays
        p, m, v, max_v = wide
        kernels.run(
            "adam_step", p, widen(grads[i]), m, v, max_v, beta1, beta2, lr / (1 - beta1**step), root(1 - beta2**step),
            eps, 0.0 if decoupled else weight_decay, 1 - lr * weight_decay if decoupled else 1.0, maximize,
        )  # fmt: skip
        if wide is not arrays:
            for half, array in zip(arrays, wide, strict=True):
                if half is not None:
                    half[...] = cast(array, dtype_of(half))


class Adam(Optimizer):
    """Adapt the step of each element by running averages of the gradient and of its square.

    g = ∇ + weight_decay · p
    m = beta1 · m + (1 - beta1) · g
    v = beta2 · v + (1 - beta2) · g²
    p = p - lr · (m / (1 - beta1ᵗ)) / (√(v / (1 - beta2ᵗ)) + eps)

    On a GPU one kernel launch updates all parameters of a group.

    Args:    as torch.optim.Adam; `foreach` and `fused` are accepted and have no effect
        capturable: count the steps on the device, so that a CUDA graph can capture a step; `lr` may be a device tensor
        amsgrad: use the maximum of v so far
        decoupled_weight_decay: decay weights as AdamW does

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
        by_step: dict[float | None, list[int]] = {}  # indices by step count; None if the count is on the device
        for i, (param, state) in enumerate(zip(params, states, strict=True)):
            if not state:
                begin(state, param, *names)
                if group["capturable"]:
                    state["step"] = move(state["step"], device_of(param))
            by_step.setdefault(count(state) if type(state["step"]) is np.ndarray else None, []).append(i)
        is_device_lr = isinstance(lr, Tensor) and type(lr.array) is type(params[0]) and None in by_step
        lr = lr.array if is_device_lr else float(lr)
        beta1, beta2 = map(float, group["betas"])
        for step, indices in by_step.items():
            moments = [[states[i][name] for i in indices] for name in names]
            args = (
                [params[i] for i in indices], [grads[i] for i in indices], moments[0], moments[1],
                moments[2] if amsgrad else None, [states[i]["step"] for i in indices] if step is None else step,
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
    """Adam with decoupled weight decay, applied to the weights instead of the gradient.

    p = p - lr · weight_decay · p, then as in Adam

    Args:    as in Adam

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
            group["decoupled_weight_decay"] = True  # also after loading the state of an Adam optimizer

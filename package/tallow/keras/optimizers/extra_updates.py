"""The steps of Keras' optimizers that PyTorch lacks, as optimizers of `tallow.optim`."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.optim.moments import begin, count, move_average
from tallow.optim.optimizer import Group, Optimizer


class _Plain(Optimizer):
    """Base class; the Keras optimizer has already checked the options."""

    def __init__(self, params: Iterable[Any], **options: Any) -> None:
        super().__init__(params, options)


class Ftrl(_Plain):
    """Follow the regularized leader.

    n' = n + g²,  z = z + g + 2 shrinkage p - (n'^-power - n^-power) / lr · p,
    p = (clip(z, -l1, l1) - z) / (n'^-power / lr + 2 l2 + beta / lr)

    Source:  McMahan et al. 2013, "Ad Click Prediction", algorithm 1
    """

    MOMENTS = ("accumulator", "linear")

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
            state["accumulator"][...] = group["initial_accumulator_value"]
        total, linear = state["accumulator"], state["linear"]
        lr, power, l1 = float(group["lr"]), -group["power"], group["l1"]
        xp = array_module(param)
        new = total + grad * grad
        linear += grad + 2 * group["shrinkage"] * param - (new**power - total**power) / lr * param
        param[...] = (xp.clip(linear, -l1, l1) - linear) / (new**power / lr + 2 * group["l2"] + group["beta"] / lr)
        total[...] = new


class Lamb(_Plain):
    """Adam with steps in proportion to the norm of the parameter.

    u = m / (1 - beta1ᵗ) / (√(v / (1 - beta2ᵗ)) + eps),  p = p - lr |p| / |u| · u;  the factor |p| / |u| is 1 if a norm
    is 0.

    Source:  You et al. 2019, arXiv:1904.00962, algorithm 2
    """

    MOMENTS = ("exp_avg", "exp_avg_sq")

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
        step = count(state)
        beta1, beta2 = group["betas"]
        move_average(state["exp_avg"], grad, 1 - beta1)
        move_average(state["exp_avg_sq"], grad * grad, 1 - beta2)
        root = array_module(param).sqrt(state["exp_avg_sq"] / (1 - beta2**step)) + group["eps"]
        change = state["exp_avg"] / (1 - beta1**step) / root
        lengths = [sqrt(float((array * array).sum())) for array in (param, change)]
        ratio = lengths[0] / lengths[1] if all(lengths) else 1.0
        param -= ratio * float(group["lr"]) * change


class Adafactor(_Plain):
    """Adam without momentum, its second moment factored into row means r and column means c: v = r · cᵀ / mean(r).

    u = g / √v,  p = p - max(eps2, rms(p)) · rate · u / max(1, rms(u) / clip_threshold)

    Source:  Shazeer and Stern 2018, arXiv:1804.04235, algorithms 4 and 5
    """

    MOMENTS = ("velocity",)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        xp = array_module(param)
        if not state:
            begin(state, param, *self.MOMENTS)
            if param.ndim >= 2:
                state["row"] = xp.zeros_like(param[..., 0])
                state["column"] = xp.zeros_like(param[..., 0, :])
        step = count(state)
        lr = float(group["lr"])
        if group["relative_step"]:
            lr = min(lr, 1 / sqrt(step))
        size = max(group["eps2"], float(_rms(param))) * min(lr, 1 / sqrt(step))
        weight = step ** group["beta_2_decay"]  # 1 - beta_2 for this step
        squares = grad * grad + group["eps1"]
        velocity = state["velocity"]
        if param.ndim >= 2:
            row, column = state["row"], state["column"]
            move_average(row, squares.mean(-1), weight)
            move_average(column, squares.mean(-2), weight)
            velocity[...] = (row / row.mean(-1, keepdims=True))[..., None] * column[..., None, :]
        else:
            move_average(velocity, squares, weight)
        change = grad / xp.sqrt(velocity)
        param -= size * change / max(1.0, float(_rms(change)) / group["clip_threshold"])


def _rms(array: Array) -> Array:
    return array_module(array).sqrt((array * array).mean())


class ScheduleFreeAdamW(_Plain):
    """AdamW with averaged weights instead of a learning rate schedule.

    z = z - lr · g / (√(v / (1 - beta2ᵗ)) + eps),  x = (1 - 1/t) x + z / t,  p = (1 - beta1) z + beta1 x

    Source:  Defazio et al. 2024, arXiv:2405.15682, algorithm 1
    """

    MOMENTS = ("momentum", "velocity")

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
            state["momentum"][...] = param
        step = count(state)
        beta1, beta2 = group["betas"]
        lr = float(group["lr"])
        if group["warmup_steps"]:
            lr *= min(step / group["warmup_steps"], 1.0)
        z, velocity = state["momentum"], state["velocity"]
        average = (param - (1 - beta1) * z) / beta1
        move_average(velocity, grad * grad, 1 - beta2)
        z -= lr * grad / (array_module(param).sqrt(velocity / (1 - beta2**step)) + group["eps"])
        average += (z - average) / step
        param[...] = (1 - beta1) * z + beta1 * average


class Muon(_Plain):
    """Orthogonalized momentum for matrices; Adam for other parameters and for embeddings.

    m = momentum · m + g,  u = orthogonal(g + momentum · m),  p = p - lr · rms_rate · √max(rows, columns) · u

    Source:  Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"
    """

    MOMENTS = ("momentum", "velocity")

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        is_adam = group["is_adam"]
        if not state:
            begin(state, param, *(self.MOMENTS if is_adam else self.MOMENTS[:1]))
        step = count(state)
        moment = state["momentum"]
        lr = float(group["lr"])
        if is_adam:
            beta1, beta2 = group["betas"]
            move_average(moment, grad, 1 - beta1)
            move_average(state["velocity"], grad * grad, 1 - beta2)
            rate = lr * group["adam_lr_ratio"] * sqrt(1 - beta2**step) / (1 - beta1**step)
            param -= rate * moment / (array_module(param).sqrt(state["velocity"]) + group["eps"])
            return
        moment *= group["momentum"]
        moment += grad
        change = orthogonalize(grad + group["momentum"] * moment if group["nesterov"] else moment, group)
        if group["rms_rate"] is not None:
            change *= sqrt(max(param.shape)) * group["rms_rate"]
        param -= lr * change


def orthogonalize(x: Array, group: Group) -> Array:
    """Return the matrix with its singular values near 1, by the Newton-Schulz iteration."""
    a, b, c = group["coefficients"]
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (sqrt(float((x * x).sum())) + 1e-7)
    for _ in range(group["ns_steps"]):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if is_tall else x

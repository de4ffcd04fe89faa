"""Steps whose formula differs between Keras and PyTorch; `tallow.optim` computes the others.

Most differ in epsilon, which Keras adds under the root, or before the bias correction of the averages. The
constructors and the state are those of `tallow.optim`.
"""

from __future__ import annotations

from math import sqrt

from tallow import kernels, optim
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.optim.moments import begin, count, move_average
from tallow.optim.optimizer import Group


class SGD(optim.SGD):
    """v = momentum · v - lr · g,  p = p + v;  with nesterov  p = p + momentum · v - lr · g.

    The velocity includes the learning rate, so that a change of the rate takes effect gradually; PyTorch applies the
    rate last.
    """

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        if not momentum:
            param -= lr * grad
            return
        if not state:
            begin(state, param, "momentum_buffer")
        velocity = state["momentum_buffer"]
        velocity *= momentum
        velocity -= lr * grad
        if group["nesterov"]:
            param += momentum * velocity - lr * grad
        else:
            param += velocity


class RMSprop(optim.RMSprop):
    """v = rho · v + (1 - rho) · g²,  p = p - lr · g / √(v + eps).

    With centered, the squared mean of g is subtracted from v. With momentum, b = momentum · b + lr · g / √(v + eps) and
    p = p - b.
    """

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        rho, momentum, centered = group["alpha"], group["momentum"], group["centered"]
        if not state:
            is_used = {"square_avg": True, "momentum_buffer": momentum, "grad_avg": centered}
            begin(state, param, *(name for name in self.MOMENTS if is_used[name]))
        average = state["square_avg"]
        average *= rho
        average += (1 - rho) * grad * grad
        under_root = average + group["eps"]
        if centered:
            mean = state["grad_avg"]
            move_average(mean, grad, 1 - rho)
            under_root -= mean * mean
        change = float(group["lr"]) * grad / array_module(param).sqrt(under_root)
        if momentum:
            buffer = state["momentum_buffer"]
            buffer *= momentum
            buffer += change
            change = buffer
        param -= change


class Adagrad(optim.Adagrad):
    """s = s + g²,  p = p - lr · g / √(s + eps)."""

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, "sum")
            state["sum"][...] = group["initial_accumulator_value"]
        total = state["sum"]
        total += grad * grad
        param -= float(group["lr"]) * grad / array_module(param).sqrt(total + group["eps"])


class Adam(optim.Adam):
    """PyTorch's Adam, but with epsilon added before the bias correction of v.

    p = p - lr · √(1 - beta2ᵗ) / (1 - beta1ᵗ) · m / (√v + eps)

    Source:  Kingma & Ba 2014, arXiv:1412.6980, the remark at the end of section 2
    """

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        amsgrad = group["amsgrad"]
        if not state:
            begin(state, param, *(self.MOMENTS if amsgrad else self.MOMENTS[:2]))
        step = count(state)
        beta1, beta2 = group["betas"]
        step_size = float(group["lr"]) * sqrt(1 - beta2**step) / (1 - beta1**step)
        kernels.run(
            "adam_step", param, grad, state["exp_avg"], state["exp_avg_sq"],
            state["max_exp_avg_sq"] if amsgrad else None, beta1, beta2, step_size, 1.0, group["eps"], 0.0, 1.0, False,
        )  # fmt: skip


class Adamax(optim.Adamax):
    """m = beta1 · m + (1 - beta1) · g,  u = max(beta2 · u, |g|),  p = p - lr / (1 - beta1ᵗ) · m / (u + eps)."""

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if not state:
            begin(state, param, *self.MOMENTS)
        step = count(state)
        xp = array_module(param)
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        move_average(mean, grad, 1 - beta1)
        largest *= beta2
        xp.maximum(largest, xp.abs(grad), out=largest)
        param -= float(group["lr"]) / (1 - beta1**step) * mean / (largest + group["eps"])

"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow import kernels
from tallow.devices import array_module, device_type_of
from tallow.dtypes import HALVES, Array, cast, dtype_of, widen
from tallow.errors import ArgumentError, GraphError
from tallow.kernels import kernel
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative


@kernel("sgd_step", "array")
def sgd_step(
    param: Array, grad: Array, buffer: Array | None, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """Apply the formula of `SGD` in place to `param` and `buffer`; None as buffer means no momentum."""
    if maximize:
        grad = -grad
    if weight_decay:
        grad = grad + weight_decay * param
    if buffer is not None:
        buffer *= momentum
        buffer += (1 - dampening) * grad if dampening else grad
        grad = grad + momentum * buffer if nesterov else buffer
    param -= lr * grad


@kernel("sgd_steps", "array")
def sgd_steps(
    params: list[Array], grads: list[Array], buffers: list[Array] | None, lr: float, momentum: float, dampening: float,
    weight_decay: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """Apply `sgd_step` to many parameters of the same dtype."""
    for i, param in enumerate(params):
        grad, buffer = grads[i], None if buffers is None else buffers[i]
        if param.dtype not in HALVES:
            sgd_step(param, grad, buffer, lr, momentum, dampening, weight_decay, nesterov, maximize)
            continue
        wide, wide_buffer = widen(param), None if buffer is None else widen(buffer)
        kernels.run(
            "sgd_step", wide, widen(grad), wide_buffer, lr, momentum, dampening, weight_decay, nesterov, maximize
        )
        param[...] = cast(wide, dtype_of(param))
        if buffer is not None:
            buffer[...] = cast(wide_buffer, dtype_of(buffer))


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    g = ∇ + weight_decay · p
    b = momentum · b + (1 - dampening) · g                  b = g in the first step
    p = p - lr · b,  or  p - lr · (g + momentum · b) with nesterov

    On a GPU one kernel launch updates all parameters of a group.

    Args:    as torch.optim.SGD; `foreach` and `fused` are accepted and have no effect

    Source:  Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning"
    """

    MOMENTS = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        self.update_many([param], [grad], [state], group)

    def update_many(
        self, params: list[Array], grads: list[Array], states: list[dict[str, Array]], group: Group
    ) -> None:
        if not group["momentum"]:
            return self._step(params, grads, None, 0, group)
        steps: dict[bool, list[int]] = {}  # the first step of a parameter is not dampened
        for i, (param, state) in enumerate(zip(params, states, strict=True)):
            is_first = "momentum_buffer" not in state
            if is_first:
                state["momentum_buffer"] = array_module(param).zeros_like(param)
            steps.setdefault(is_first, []).append(i)
        for is_first, indices in steps.items():
            buffers = [states[i]["momentum_buffer"] for i in indices]
            dampening = 0 if is_first else group["dampening"]
            self._step([params[i] for i in indices], [grads[i] for i in indices], buffers, dampening, group)

    def update_rows(self, param: Array, rows: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        if group["weight_decay"]:
            raise GraphError("SGD: weight_decay is not compatible with sparse gradients", hint="weight_decay=0")
        if group["momentum"]:  # it moves all rows that ever had a gradient
            whole = array_module(param).zeros_like(param)
            whole[rows] = grad
            return self.update_many([param], [whole], [state], group)
        param[rows] += (float(group["lr"]) if group["maximize"] else -float(group["lr"])) * grad

    @staticmethod
    def _step(
        params: list[Array], grads: list[Array], buffers: list[Array] | None, dampening: float, group: Group
    ) -> None:
        args = (
            params, grads, buffers, float(group["lr"]), group["momentum"], dampening, group["weight_decay"],
            group["nesterov"], group["maximize"],
        )  # fmt: skip
        kernels.pick("sgd_steps", device_type_of(params[0]), *args).fn(*args)

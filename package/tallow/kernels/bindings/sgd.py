"""sgd_step, sgd_steps; see src/elementwise/sgd_step_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, writable_alike
from tallow.kernels.bindings.threads import by_rows, call_small
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel, run

_sgd_step = function("tl_sgd_step_f32", None, *[POINTER] * 4, SIZE)

WORK = 20.0  # multiplications that take as long as the update of one element


def float32_writable(param: Array, grad: Array, buffer: Array | None, *_: float) -> bool:
    """Contiguous, aligned float32 arrays of one shape; all but the gradient writable."""
    return writable_alike(grad, param, buffer)


@kernel("sgd_step", BACKEND, accepts=float32_writable)
def sgd_step(param: Array, grad: Array, buffer: Array | None, *options: float) -> None:
    """Compute tallow.optim.sgd.sgd_step in one pass over the arrays."""
    if not writable_alike(grad, param, buffer):
        raise KernelUnavailable("sgd_step: the arrays do not meet the kernel's requirements; see kernels.explain")
    sgd_steps([param], [grad], None if buffer is None else [buffer], *options)


def float32_lists(params: list[Array], *_: object) -> bool:
    """Lists of float32 arrays."""
    return params[0].dtype == FLOAT32


@kernel("sgd_steps", BACKEND, accepts=float32_lists)
def sgd_steps(params: list[Array], grads: list[Array], buffers: list[Array] | None, *options: float) -> None:
    """Compute tallow.optim.sgd.sgd_steps."""
    numbers = _for_c(*options)
    for i, param in enumerate(params):
        grad, buffer, size = grads[i], None if buffers is None else buffers[i], param.size
        if not writable_alike(grad, param, buffer):
            run("sgd_step", param, grad, buffer, *options)
        elif not call_small(_sgd_step, WORK * size, param, grad, buffer, numbers, size):
            by_rows(_sgd_step, (param, grad, buffer, numbers), size, WORK * size, shared=1)


def _for_c(
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: float, maximize: float
) -> Array:
    return np.array((-1 if maximize else 1, weight_decay, momentum, 1 - dampening, lr, nesterov), FLOAT32)

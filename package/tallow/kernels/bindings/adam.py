"""adam_step; see src/elementwise/adam_step_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, writable_alike
from tallow.kernels.bindings.threads import by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_adam_step = function("tl_adam_step_f32", None, *[POINTER] * 6, SIZE)


def float32_writable(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None, *_: float
) -> bool:
    """Contiguous, aligned float32 arrays of one shape; all but the gradient writable."""
    return writable_alike(grad, param, exp_avg, exp_avg_sq, max_exp_avg_sq)


@kernel("adam_step", BACKEND, accepts=float32_writable)
def adam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None,
    beta1: float, beta2: float, step_size: float, scale: float, eps: float, decay: float, shrink: float, maximize: bool,
) -> None:  # fmt: skip
    """Compute tallow.optim.adam.adam_step in one pass over the arrays."""
    if not float32_writable(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq):
        raise KernelUnavailable("adam_step: the arrays do not meet the kernel's requirements; see kernels.explain")
    sign = -1.0 if maximize else 1.0
    options = np.array((sign, decay, shrink, 1 - beta1, beta2, 1 - beta2, step_size, scale, eps), FLOAT32)
    arrays = (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, options)
    by_rows(_adam_step, arrays, param.size, 20.0 * param.size, shared=1)

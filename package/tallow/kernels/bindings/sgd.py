"""sgd_step; see src/sgd_step_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, writable_alike
from tallow.kernels.bindings.threads import by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_sgd_step = function("tl_sgd_step_f32", None, *[POINTER] * 4, SIZE)

# With fewer elements NumPy's two to five operations are done before C has its arguments (6 µs; natively).
SGD_WORTH_A_CALL = 16_384


def many_float32_writable(param: Array, grad: Array, buffer: Array | None, *_: float) -> bool:
    """Contiguous, aligned float32 arrays of one shape with at least 16,384 elements; all but the gradient writable."""
    return param.size >= SGD_WORTH_A_CALL and writable_alike(grad, param, buffer)


@kernel("sgd_step", BACKEND, accepts=many_float32_writable)
def sgd_step(
    param: Array, grad: Array, buffer: Array | None, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """Compute tallow.optim.sgd.sgd_step in one pass over the arrays."""
    if not writable_alike(grad, param, buffer):
        raise KernelUnavailable("sgd_step: the arrays do not meet the kernel's requirements; see kernels.explain")
    options = np.array((-1 if maximize else 1, weight_decay, momentum, 1 - dampening, lr, nesterov), FLOAT32)
    by_rows(_sgd_step, (param, grad, buffer, options), param.size, 8.0 * param.size, shared=1)

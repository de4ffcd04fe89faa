"""sgd_step; see src/sgd_step_f32.c."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, writable_alike
from tallow.kernels.bindings.threads import by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import PLANS, kernel

_sgd_step = function("tl_sgd_step_f32", None, *[POINTER] * 4, SIZE)


def float32_writable(param: Array, grad: Array, buffer: Array | None, *_: float) -> bool:
    """Contiguous, aligned float32 arrays of one shape; all but the gradient writable."""
    return writable_alike(grad, param, buffer)


@lru_cache(PLANS)
def _options(*options: float) -> Array:
    """Return the numbers as the C function takes them: the same ones for each parameter."""
    return np.array(options, FLOAT32)


@kernel("sgd_step", BACKEND, accepts=float32_writable)
def sgd_step(
    param: Array, grad: Array, buffer: Array | None, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """Compute tallow.optim.sgd.sgd_step in one pass over the arrays."""
    if not writable_alike(grad, param, buffer):
        raise KernelUnavailable("sgd_step: the arrays do not meet the kernel's requirements; see kernels.explain")
    options = _options(-1 if maximize else 1, weight_decay, momentum, 1 - dampening, lr, nesterov)
    by_rows(_sgd_step, (param, grad, buffer, options), param.size, 8.0 * param.size, shared=1)

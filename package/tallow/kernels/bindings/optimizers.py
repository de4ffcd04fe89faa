"""adam_step: see src/adam_step_f32.c."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, address, compiled, optional_address
from tallow.kernels.library import FLOAT, POINTER, SIZE, function

_adam_step = function("tl_adam_step_f32", None, *[POINTER] * 5, SIZE, *[FLOAT] * 9)


def float32_writable(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None, *_: float
) -> bool:
    """Contiguous, aligned float32 arrays of one shape; all but the gradient writable."""
    shape = param.shape
    for array in (param, exp_avg, exp_avg_sq, max_exp_avg_sq):
        if array is not None and not (array.flags.carray and array.dtype == FLOAT32 and array.shape == shape):
            return False
    flags = grad.flags
    return flags.c_contiguous and flags.aligned and grad.dtype == FLOAT32 and grad.shape == shape


@compiled("adam_step", float32_writable)
def adam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None,
    beta1: float, beta2: float, step_size: float, scale: float, eps: float, decay: float, shrink: float, maximize: bool,
) -> None:  # fmt: skip
    """As tallow.optim.adam.adam_step, in one pass over the arrays."""
    if not float32_writable(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq):
        raise KernelUnavailable("adam_step: the arrays are not as C needs them; see kernels.explain")
    _adam_step(
        address(param), address(grad), address(exp_avg), address(exp_avg_sq), optional_address(max_exp_avg_sq),
        param.size, -1.0 if maximize else 1.0, decay, shrink, 1 - beta1, beta2, 1 - beta2, step_size, scale, eps,
    )  # fmt: skip

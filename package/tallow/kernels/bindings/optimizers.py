"""adam_step, sgd_step: see src/{adam,sgd}_step_f32.c."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, compiled
from tallow.kernels.bindings.threads import by_rows
from tallow.kernels.library import FLOAT, INT, POINTER, SIZE, function

_adam_step = function("tl_adam_step_f32", None, *[POINTER] * 5, SIZE, *[FLOAT] * 9)
_sgd_step = function("tl_sgd_step_f32", None, *[POINTER] * 3, SIZE, *[FLOAT] * 5, INT)

# Below this many elements NumPy's two to five operations are done before C has its arguments (6 µs; natively).
SGD_WORTH_A_CALL = 16_384


def _fit(grad: Array, *written: Array | None) -> bool:
    """Whether all are contiguous, aligned float32 arrays of one shape; all but the gradient writable."""
    shape = grad.shape
    for array in written:
        if array is not None and not (array.flags.carray and array.dtype == FLOAT32 and array.shape == shape):
            return False
    flags = grad.flags
    return flags.c_contiguous and flags.aligned and grad.dtype == FLOAT32


def float32_writable(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None, *_: float
) -> bool:
    """Contiguous, aligned float32 arrays of one shape; all but the gradient writable."""
    return _fit(grad, param, exp_avg, exp_avg_sq, max_exp_avg_sq)


def many_float32_writable(param: Array, grad: Array, buffer: Array | None, *_: float) -> bool:
    """Contiguous, aligned float32 arrays of one shape, 16,384 elements at least; all but the gradient writable."""
    return param.size >= SGD_WORTH_A_CALL and _fit(grad, param, buffer)


@compiled("adam_step", float32_writable)
def adam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None,
    beta1: float, beta2: float, step_size: float, scale: float, eps: float, decay: float, shrink: float, maximize: bool,
) -> None:  # fmt: skip
    """As tallow.optim.adam.adam_step, in one pass over the arrays."""
    if not float32_writable(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq):
        raise KernelUnavailable("adam_step: the arrays are not as C needs them; see kernels.explain")
    sign = -1.0 if maximize else 1.0
    options = (sign, decay, shrink, 1 - beta1, beta2, 1 - beta2, step_size, scale, eps)
    arrays = (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq)
    by_rows(lambda *args: _adam_step(*args, *options), arrays, param.size, 20.0 * param.size)


@compiled("sgd_step", many_float32_writable)
def sgd_step(
    param: Array, grad: Array, buffer: Array | None, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """As tallow.optim.sgd.sgd_step, in one pass over the arrays."""
    if not _fit(grad, param, buffer):
        raise KernelUnavailable("sgd_step: the arrays are not as C needs them; see kernels.explain")
    options = (-1.0 if maximize else 1.0, weight_decay, momentum, 1 - dampening, lr, nesterov)
    by_rows(lambda *args: _sgd_step(*args, *options), (param, grad, buffer), param.size, 8.0 * param.size)

"""sgd_steps: many parameters in a launch; see src/sgd.cu."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import contiguous
from tallow_cuda.lists import float_lists, launch_lists
from tallow_cuda.sources import element, load


@kernel("sgd_steps", "cuda", accepts=float_lists)
def sgd_steps(
    params: list[Array], grads: list[Array], buffers: list[Array] | None, lr: float, momentum: float, dampening: float,
    weight_decay: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """Compute tallow.optim.sgd.sgd_steps, 64 parameters per launch."""
    grads = [contiguous(grad) for grad in grads]
    kernel = load("sgd.cu", "sgd_steps", P=element(params[0]), G=element(grads[0]))
    options = (-1.0 if maximize else 1.0, weight_decay, momentum, 1 - dampening, lr, nesterov)
    launch_lists(kernel, [params, grads, buffers], *map(float, options))

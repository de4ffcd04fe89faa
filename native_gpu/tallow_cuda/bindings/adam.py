"""adam_steps: many parameters in a launch; see src/adam.cu."""

from __future__ import annotations

from math import log
from typing import Any

from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import FLOAT32, contiguous
from tallow_cuda.lists import float_lists, launch_lists
from tallow_cuda.sources import element, load


def _counts_fit(*args: Any) -> bool:
    """As float_lists; steps counted on the device, and a learning rate on the device, in float32."""
    steps, lr = args[5], args[6]
    counts = steps if isinstance(steps, list) else []
    numbers = [*counts, *([] if isinstance(lr, float) else [lr])]
    return float_lists(*args[:5]) and all(type(a) is type(args[0][0]) and a.dtype == FLOAT32 for a in numbers)


@kernel("adam_steps", "cuda", accepts=_counts_fit)
def adam_steps(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    max_exp_avg_sqs: list[Array] | None, steps: float | list[Array], lr: float | Array, beta1: float, beta2: float,
    eps: float, weight_decay: float, decoupled: bool, maximize: bool,
) -> None:  # fmt: skip
    """Compute tallow.optim.adam.adam_steps, 64 parameters per launch."""
    grads = [contiguous(grad) for grad in grads]
    bias1 = bias2 = 1.0
    counts = None
    if isinstance(steps, list):
        launch_lists(load("adam.cu", "count_steps", P="float", G="float"), [steps])
        counts = steps
    else:
        bias1, bias2 = 1 - beta1**steps, 1 - beta2**steps
    kernel = load("adam.cu", "adam_steps", P=element(params[0]), G=element(grads[0]))
    on_host = isinstance(lr, float)
    launch_lists(
        kernel, [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, counts], -1.0 if maximize else 1.0,
        0.0 if decoupled else float(weight_decay), float(weight_decay) if decoupled else 0.0, 1.0 - beta1, beta2,
        1.0 - beta2, lr if on_host else 0.0, bias1, bias2, float(eps), _log(beta1), _log(beta2),
        None if on_host else lr,
    )  # fmt: skip


def _log(beta: float) -> float:
    return log(beta) if beta else -float("inf")

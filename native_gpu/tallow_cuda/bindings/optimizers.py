"""adam_steps, sgd_steps, total_norm, scale_all: many arrays at once, see src/{adam,sgd,norms_of_many}.cu."""

from __future__ import annotations

from math import log
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow_cuda.launching import FLOAT32, contiguous, cuda, is_float, launch
from tallow_cuda.lists import FIRST, alike, count_blocks, launch_lists
from tallow_cuda.sources import element, load


def float_lists(params: list[Array], grads: list[Array], *rest: Any) -> bool:
    """Contiguous float32, float16 or bfloat16 arrays, and gradients of one such dtype in any order of elements."""
    written = [params, *(arrays for arrays in rest[:3] if isinstance(arrays, list))]
    return (
        is_float(params[0], *grads)
        and all(grad.dtype == grads[0].dtype for grad in grads)
        and all(arrays[0].dtype == params[0].dtype for arrays in written)
        and alike(*written)
    )


def _counts_fit(*args: Any) -> bool:
    """As float_lists; where the device counts the steps, it does in float32, and the learning rate is so too."""
    steps, lr = args[5], args[6]
    counts = steps if isinstance(steps, list) else []
    numbers = [*counts, *([] if isinstance(lr, float) else [lr])]
    return float_lists(*args[:5]) and all(type(a) is type(args[0][0]) and a.dtype == FLOAT32 for a in numbers)


@cuda("adam_steps", _counts_fit)
def adam_steps(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    max_exp_avg_sqs: list[Array] | None, steps: float | list[Array], lr: float | Array, beta1: float, beta2: float,
    eps: float, weight_decay: float, decoupled: bool, maximize: bool,
) -> None:  # fmt: skip
    """As tallow.optim.adam.adam_steps, 64 parameters in a launch."""
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


@cuda("sgd_steps", float_lists)
def sgd_steps(
    params: list[Array], grads: list[Array], buffers: list[Array] | None, lr: float, momentum: float, dampening: float,
    weight_decay: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """As tallow.optim.sgd.sgd_steps, 64 parameters in a launch."""
    grads = [contiguous(grad) for grad in grads]
    kernel = load("sgd.cu", "sgd_steps", P=element(params[0]), G=element(grads[0]))
    options = (-1.0 if maximize else 1.0, weight_decay, momentum, 1 - dampening, lr, nesterov)
    launch_lists(kernel, [params, grads, buffers], *map(float, options))


def float_list(arrays: list[Array], *_: Any) -> bool:
    """Contiguous arrays of float32, float16 or bfloat16."""
    return is_float(arrays[0]) and alike(arrays)


@cuda("total_norm", float_list)
def total_norm(arrays: list[Array]) -> Array:
    """As tallow.ops.together.total_norm, in two launches."""
    xp, blocks = array_module(arrays[0]), count_blocks(arrays)
    partial, y = xp.empty(blocks, FLOAT32), xp.empty((), FLOAT32)
    x = element(arrays[0])
    launch_lists(load("norms_of_many.cu", "square_sums", X=x), [arrays], partial, FIRST)
    launch(load("norms_of_many.cu", "root_of_sum", X=x), (1,), (1024,), partial, blocks, y)
    return y


@cuda("scale_all", float_list)
def scale_all(arrays: list[Array], factor: float | Array, found: Array | None) -> None:
    """As tallow.ops.together.scale_all, 64 arrays in a launch."""
    kernel = load("norms_of_many.cu", "scale", X=element(arrays[0]))
    there, number = (None, factor) if isinstance(factor, float) else (widen(factor).astype(FLOAT32, copy=False), 1.0)
    launch_lists(kernel, [arrays], there, number, found)

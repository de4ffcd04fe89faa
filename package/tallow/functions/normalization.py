"""Batch, instance and local response normalisation."""

from __future__ import annotations

import math
from typing import Any

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.dtypes import float32
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.ops.channel_normalization import (
    batch_norm_in_evaluation,
    batch_norm_in_training,
    check_channels,
    group_norm,
)
from tallow.ops.padding import pad
from tallow.ops.pooling import avg_pool
from tallow.tape.modes import no_grad


@public("F")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Compute (x - mean) / sqrt(var + eps) ⊙ weight + bias for each channel.

    Args:
        training: take the statistics of this batch, and move the running ones towards them by `momentum`; otherwise
            take the running ones.

    Shapes:  input (N, C, ...) -> the same; all others (C)
    Source:  Ioffe & Szegedy 2015, arXiv:1502.03167
    """
    if type(training) is not bool or type(momentum) is not float or type(eps) is not float:
        _check_settings(training, momentum, eps)
    others = (running_mean, running_var, weight, bias)
    if input.array.itemsize == 2 and any(t is not None and t.dtype is float32 for t in others):
        return batch_norm(input.float(), *others, training, momentum, eps).to(input.dtype)
    if not input.array.size and (not training or math.prod((*input.shape[:1], *input.shape[2:])) != 1):
        return _nothing_to_norm(input, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: running_mean and running_var are required when training=False")
        return batch_norm_in_evaluation.call(input, running_mean, running_var, weight, bias, eps)
    if (running_mean is None) != (running_var is None):
        raise ArgumentError("batch_norm: of running_mean and running_var one is None", hint="pass both or none")
    if running_mean is None:
        return batch_norm_in_training.call(input, weight, bias, eps)[0]
    for statistic in (running_mean, running_var):
        if statistic is not None:
            check_channels("batch_norm", input.array, statistic.array)
    y, mean, var = batch_norm_in_training.call(input, weight, bias, eps)
    count = input.numel() // input.shape[1]
    move_statistic(running_mean, mean, momentum)
    move_statistic(running_var, var, momentum, count / (count - 1))
    return y


def _check_settings(training: Any, momentum: Any, eps: Any) -> None:
    if not isinstance(training, bool):
        raise ArgumentTypeError(f"batch_norm(): argument 'training' must be bool, not {type(training).__name__}")
    for name, value in (("momentum", momentum), ("eps", eps)):
        if isinstance(value, str | list | tuple) or value is None:
            raise ArgumentTypeError(f"batch_norm(): argument '{name}' must be float, not {type(value).__name__}")


def _nothing_to_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Normalise no elements: the running statistics do not change, the gradients of weight and bias are zero."""
    value = input.clone()
    if weight is not None:
        value = value * weight.sum()
    return value if bias is None else value + bias.sum()


def move_statistic(running: Tensor | None, to: Tensor, momentum: float, scale: float = 1.0) -> None:
    """Move a running statistic towards that of a batch, times `scale`."""
    if running is not None:
        with no_grad():
            step = to * (momentum * scale)
            running.mul_(1 - momentum).add_(step if step.dtype is running.dtype else step.to(running.dtype))


@public("F", checked=True)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Compute batch_norm with separate statistics for each sample.

    Args:    use_input_stats: take them from the input, and move the running ones; otherwise take the running ones.
    Shapes:  input (N, C, *spatial) -> the same; all others (C)
    Source:  Ulyanov et al. 2016, arXiv:1607.08022
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    check_channels("instance_norm", input.array, *(None if s is None else s.array for s in (running_mean, running_var)))
    shape = input.array.shape
    count = input.numel() // (shape[0] * shape[1]) if input.numel() else 0
    if count == 1:
        raise ArgumentError(f"instance_norm: expected more than 1 spatial element when training, got input {shape}")
    if not input.numel():
        return _nothing_to_norm(input, weight, bias)
    if running_mean is not None or running_var is not None:
        rows = input.detach().flatten(2)
        move_statistic(running_mean, rows.mean(2).mean(0), momentum)
        move_statistic(running_var, rows.var(2).mean(0), momentum)
    return apply(group_norm, input.contiguous(), shape[1], weight, bias, eps)


@public("F")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Compute x / (k + alpha · mean of x² over `size` neighbouring channels)^beta.

    Shapes:  input (N, C, ...) -> the same
    Source:  Krizhevsky et al. 2012, "ImageNet Classification with Deep Convolutional Neural Networks", section 3.3
    """
    if input.ndim < 3:
        raise ArgumentError(
            f"local_response_norm: expected 3D or higher dimensionality input, got {tuple(input.shape)}"
        )
    if not input.numel():
        return input
    n, c = input.array.shape[:2]
    near = min(size, 2 * c)  # a window of more holds zeros beside all channels
    squares = apply(pad, input.square().reshape(n, c, -1), (0, 0, near // 2, (near - 1) // 2))
    mean = apply(avg_pool, squares, 2, (near, 1), 1)
    return input / (mean * (alpha * near / size) + k).pow(beta).reshape(input.shape)

"""What updates share: running averages, the count of steps, and the direction to go."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.dtypes import Array


def scalar(value: float) -> Array:
    """A number that the state keeps: zero-dim, float32 unless the default dtype is float64, on the CPU."""
    return np.array(value, dtypes.float64.storage if dtypes.get_default_dtype() is dtypes.float64 else np.float32)


def begin(state: dict[str, Array], param: Array, *moments: str) -> None:
    """Start the state of a parameter: a count of steps, and zeros of its shape under each name."""
    xp = devices.array_module(param)
    state["step"] = scalar(0.0)
    for name in moments:
        state[name] = xp.zeros_like(param)


def count(state: dict[str, Array]) -> float:
    """Count this step. The first is number 1."""
    step = state["step"]
    step += 1
    return step.item()


def descent(param: Array, grad: Array, group: dict[str, Any], lr: float = 0.0) -> Array:
    """The gradient to go down: negated to go up instead, and pulled towards zero by `weight_decay`.

    Where the group's weight decay is decoupled, the parameter itself is pulled instead, by `lr` of it.
    """
    if group["maximize"]:
        grad = -grad
    weight_decay = group["weight_decay"]
    if not weight_decay:
        return grad
    if group.get("decoupled_weight_decay"):
        param *= 1 - lr * weight_decay
        return grad
    return grad + weight_decay * param


def move_average(average: Array, value: Array, weight: float) -> None:
    """average += weight · (value - average)"""
    difference = value - average
    difference *= weight
    average += difference

"""Helpers of updates: running averages, the step count, and the descent direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.dtypes import Array


def scalar(value: float) -> Array:
    """Return a number for the state: zero-dim, float32 (float64 if that is the default dtype), on the CPU."""
    return np.array(value, dtypes.float64.storage if dtypes.get_default_dtype() is dtypes.float64 else np.float32)


def begin(state: dict[str, Array], param: Array, *moments: str) -> None:
    """Initialize the state of a parameter: a step count, and zeros of its shape under each name."""
    xp = devices.array_module(param)
    state["step"] = scalar(0.0)
    for name in moments:
        state[name] = xp.zeros_like(param)


def count(state: dict[str, Array]) -> float:
    """Increment the step count and return it; the first step is 1."""
    step = state["step"]
    step += 1
    return step.item()


def descent(param: Array, grad: Array, group: dict[str, Any], lr: float = 0.0) -> Array:
    """Return the gradient to descend: negated for `maximize`, plus `weight_decay` times the parameter.

    If the group's weight decay is decoupled, the parameter is scaled by 1 - lr · weight_decay instead.
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
    """Compute average += weight · (value - average) in place."""
    difference = value - average
    difference *= weight
    average += difference

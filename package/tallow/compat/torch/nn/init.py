"""Names of `torch.nn.init` that tallow itself does not have."""

from __future__ import annotations

import tallow
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import init


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the number of inputs and of outputs of an element of a weight."""
    return init.fan_in_and_fan_out(tensor)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Return the number of inputs, or that of outputs, as `mode` says: "fan_in" or "fan_out"."""
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ArgumentError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _no_grad_uniform_(tensor: Tensor, a: float, b: float) -> Tensor:
    with tallow.no_grad():
        return init.uniform_(tensor, a, b)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float) -> Tensor:
    with tallow.no_grad():
        return init.normal_(tensor, mean, std)


def _no_grad_trunc_normal_(tensor: Tensor, mean: float, std: float, a: float, b: float) -> Tensor:
    with tallow.no_grad():
        return init.trunc_normal_(tensor, mean, std, a, b)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with tallow.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return _no_grad_fill_(tensor, 0)

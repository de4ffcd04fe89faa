"""Rules of ops that are linear piece by piece, such as `abs`: their slopes are constants, which the closure knows."""

from __future__ import annotations

from tallow.autograd.recorded.rules import constant
from tallow.autograd.recorded.saved import Gradients, Saved
from tallow.core.tensor import Tensor
from tallow.devices import array_module


def slopes(saved: Saved, g: Tensor) -> Gradients:
    """Return what the closure returns for ones, as constants."""
    ones = array_module(g.array).ones(g.shape, g.array.dtype)
    return [None if slope is None else constant(slope) for slope in saved.call(ones)]


def scaled(g: Tensor, slope: Tensor) -> Tensor:
    """Return g * slope, and 0 where the slope is 0, even for an infinite gradient."""
    return (g * slope).masked_fill(slope == 0, 0)

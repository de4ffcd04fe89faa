"""Rules of ops that are linear piece by piece, such as `abs`: their slopes are constants, which the closure knows."""

from __future__ import annotations

from tallow.autograd.recorded.rules import constant, rule
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


@rule("median_of_all", "nanmedian_of_all")
def _reduced(saved: Saved, g: Tensor) -> Gradients:
    (slope,) = slopes(saved, g)
    assert slope is not None
    reduced = saved.constant("reduced_shape") if saved.has("reduced_shape") else ()
    saved.ignore("input", "value", "axes", "missing", "n")
    return [scaled(g.reshape(reduced), slope)]

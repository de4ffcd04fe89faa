"""Rules of ops that are linear piece by piece, such as `abs`: their slopes are constants, which the closure knows."""

from __future__ import annotations

from tallow.autograd.recorded.rules import RULES, constant, linear_map, rule
from tallow.autograd.recorded.saved import Gradients, Saved
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.dtypes import Array

# Names of the variables that closures save, by op. None of them but the slopes depends on an operand's value.
ELEMENTWISE = {
    "abs": ("input",),
    "ceil": (),
    "copysign": ("input", "value"),
    "floor": (),
    "fmax": ("first",),
    "fmin": ("first",),
    "fmod": ("input", "other"),
    "frac": (),
    "ldexp": ("exponent",),
    "maximum": ("input", "other"),
    "minimum": ("input", "other"),
    "nan_to_num": ("finite",),
    "nextafter": ("input", "other"),
    "remainder": ("input", "other"),
    "round": (),
    "rsub": ("alpha",),
    "sgn": (),
    "sign": (),
    "trunc": (),
}


def slopes(saved: Saved, g: Tensor) -> Gradients:
    """Return what the closure returns for ones, as constants."""
    ones = array_module(g.array).ones(g.shape, g.array.dtype)
    return [None if slope is None else constant(slope) for slope in saved.call(ones)]


def scaled(g: Tensor, slope: Tensor) -> Tensor:
    """Return g * slope, and 0 where the slope is 0, even for an infinite gradient."""
    return (g * slope).masked_fill(slope == 0, 0)


def _elementwise(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore(*ELEMENTWISE[saved.node.op_name.removesuffix("_")])
    return [None if edge is None else _by_slope(saved, i, g) for i, edge in enumerate(saved.node.edges)]


def _by_slope(saved: Saved, index: int, g: Tensor) -> Tensor:
    """Return what the closure returns for an operand: g times a slope, which is its own adjoint."""

    def scale(h: Array) -> Array:
        entry: Array = saved.entry(index, h)
        return entry

    return linear_map(g, scale, scale)


RULES.update(dict.fromkeys(ELEMENTWISE, _elementwise))


@rule("median_of_all", "nanmedian_of_all")
def _reduced(saved: Saved, g: Tensor) -> Gradients:
    (slope,) = slopes(saved, g)
    assert slope is not None
    reduced = saved.constant("reduced_shape") if saved.has("reduced_shape") else ()
    saved.ignore("input", "value", "axes", "missing", "n")
    return [scaled(g.reshape(reduced), slope)]

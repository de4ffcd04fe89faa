"""What dropout does once it is known what to keep."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.kernels import reference, run
from tallow.ops.table import Array, Index, Result, op


@op("", halves=True)
def scaled_mask(input: Array, keep: Index, scale: float) -> Result:
    """input ⊙ keep · scale, where `keep` are booleans that broadcast to input.

    Only the booleans are kept for backward: a byte an element.
    """
    xp = array_module(input)
    value = run("scaled_mask", input, keep, scale)
    return value, lambda g: (run("scaled_mask", xp.asarray(g), keep, scale),)


@reference("scaled_mask")
def _scaled_mask(x: Array, keep: Array, scale: float) -> Array:
    return x * keep * scale

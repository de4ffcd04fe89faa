"""What dropout does once it is known what to keep."""

from __future__ import annotations

from tallow.ops.table import Array, Index, Result, op


@op("")
def scaled_mask(input: Array, keep: Index, scale: float) -> Result:
    """input ⊙ keep · scale, where `keep` are booleans that broadcast to input.

    Only the booleans are kept for backward: a byte an element.
    """
    return input * keep * scale, lambda g: (g * keep * scale,)

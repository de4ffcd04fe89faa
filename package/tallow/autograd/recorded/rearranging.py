"""Rules of ops that move elements. They are linear: the rule is the op itself, for arrays."""

from __future__ import annotations

from tallow.autograd.recorded.rules import rule
from tallow.autograd.recorded.saved import Gradients, Saved
from tallow.core.tensor import Tensor

# Linear ops of several operands or outputs.


@rule("clone", "to_dtype", "frac")
def _same(saved: Saved, g: Tensor) -> Gradients:
    return [g]

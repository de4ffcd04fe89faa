"""Half precision in ops: widen operands before an op computes, round its value afterwards.

float16 and bfloat16 are storage formats here: arithmetic is in float32, as in PyTorch on the CPU. An op meets halves in
one of two ways:

- Most ops never do. Their operands are widened here, and their value is rounded here.
- Ops made with `halves=True` get them as they are, because a GPU kernel may read them. Where no kernel does,
  `tallow.kernels.halves.widening` widens them on the way to the array implementation. Here only the value is rounded,
  if the op returns it in float32.

Gradients travel in float32 (`tape.graph.gradient_dtype`) and are rounded at the leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import dtypes
from tallow.kernels.halves import widen_argument


def widen_operands(values: list[Any]) -> list[Any]:
    """Return the operands with halves converted to float32. Numbers and None stay."""
    return list(map(widen_argument, values))


def round_value(value: Any, half: dtypes.dtype) -> Any:
    """Round the value of an op, an array or a sequence of arrays, from float32 to a half; other dtypes stay."""
    if isinstance(value, tuple | list):
        return tuple(round_value(part, half) for part in value)
    if value.dtype != np.float32:
        return value
    return dtypes.cast(np.asarray(value) if isinstance(value, np.generic) else value, half)

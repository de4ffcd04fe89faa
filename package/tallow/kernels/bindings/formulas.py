"""formula: the kernel of chains, for large arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32
from tallow.kernels.library import BACKEND
from tallow.kernels.table import kernel, minimum

LEAST = 1 << 14  # elements; a chain takes longer than NumPy with fewer


@minimum(LEAST)
def large_float32_operands(first: Array, formula: Any, operands: Sequence[Any]) -> bool:
    """Contiguous float32 arrays of one shape, of at least {minimum} elements, and numbers."""
    return first.size >= LEAST and all(_fits(x, first.shape) for x in operands)


def _fits(x: Any, shape: tuple[int, ...]) -> bool:
    if type(x) in (int, float):
        return True
    return x.dtype == FLOAT32 and x.shape == shape and (x.flags.c_contiguous or not any(x.strides))


@kernel("formula", BACKEND, accepts=large_float32_operands)
def formula(first: Array, formula: Any, operands: Sequence[Any]) -> Array:
    """Compute tallow.ops.formulas.formula_array in one pass."""
    chain, numbers = formula.chain_of(first.shape, len(operands))
    value: Array = chain(*map(_input, operands), *numbers)[0]
    return value


def _input(x: Any) -> Array:
    """Return an operand of a chain: a contiguous array, or one element for all."""
    if type(x) in (int, float):
        return np.full(1, x, FLOAT32)
    return x if any(x.strides) else x.reshape(-1)[:1]  # without steps: the gradient of a sum

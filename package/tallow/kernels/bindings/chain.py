"""chain; see src/chain_f32.c."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, address, is_plain
from tallow.kernels.bindings.threads import ELEMENT, EXPONENTIAL, Scratch, in_parts
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_chain = function("tl_chain_f32", None, POINTER, SIZE, POINTER, POINTER, SIZE, POINTER, SIZE, SIZE)

BLOCK = 1024
TEMPORARY = -1
ADDRESS = np.dtype(np.uintp)


def plain_or_repeated(first: Array, others: Sequence[Array], chain: Any) -> bool:
    """Contiguous float32 arrays of the chain's shape, of its last dims, or of one element."""
    return all(is_plain(x) and _period(x, chain.shape) is not None for x in (first, *others))


def _period(x: Array, shape: tuple[int, ...]) -> int | None:
    """Return after how many elements an operand repeats: 0 if it does not; None if it has another shape."""
    if x.shape == shape:
        return 0
    if x.size == 1:
        return 1
    return x.size if x.ndim and x.shape == shape[len(shape) - x.ndim :] else None


@kernel("chain", BACKEND, accepts=plain_or_repeated)
def chain(first: Array, others: Sequence[Array], chain: Any) -> list[Array]:
    """Run a chain of elementwise operations in one pass over blocks that stay in the cache."""
    periods = np.full(chain.operands, TEMPORARY, np.int64)
    pointers = np.zeros(chain.operands, ADDRESS)
    for i, x in enumerate((first, *others)):
        period = _period(x, chain.shape)
        if period is None or not is_plain(x):
            raise ShapeError(f"chain: an operand {x.dtype}{list(x.shape)} does not fit {list(chain.shape)}")
        periods[i], pointers[i] = period, address(x)
    results = [np.empty(chain.shape, FLOAT32) for _ in chain.outputs]
    for i, y in zip(chain.outputs, results, strict=True):
        periods[i], pointers[i] = 0, address(y)
    scratch = Scratch(BLOCK * chain.operands)
    size, steps = prod(chain.shape), len(chain.instructions)
    fixed = address(chain.code), steps, address(pointers), address(periods), chain.operands
    work = size * sum(EXPONENTIAL if step.operation >= EXPENSIVE else ELEMENT / 4 for step in chain.instructions)
    in_parts(size, work, _chain, lambda start, end: (*fixed, scratch(), start, end))
    return results


EXPENSIVE = 8  # operations from exp on

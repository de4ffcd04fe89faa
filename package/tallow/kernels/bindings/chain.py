"""chain; see src/chain_f32.c."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, address, is_plain
from tallow.kernels.bindings.threads import ELEMENT, EXPONENTIAL, by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_chain = function("tl_chain_f32", None, *[POINTER] * 3, *[SIZE] * 4, POINTER)

BLOCK = 1024
LINE = 16  # floats of a cache line, to which C aligns the blocks
TEMPORARY = -1
ADDRESS = np.dtype(np.uintp)


def plain_or_repeated(first: Array, others: Sequence[Array], chain: Any) -> bool:
    """Contiguous float32 arrays of the chain's shape, of its last dims, or of one element."""
    return _plan_of(chain, [first, *others]) is not None


class _Plan:
    """The parts of a call that are the same for all inputs of the same shapes.

    Attributes:
        shapes: of the inputs.
        periods: after how many elements an operand repeats: 0 if it does not; TEMPORARY for one of the program's own.
        work: as for `by_steps`.
    """

    def __init__(self, chain: Any, shapes: list[tuple[int, ...]], periods: Sequence[int]) -> None:
        self.shapes = shapes
        self.periods = np.full(chain.operands, TEMPORARY, np.int64)
        self.periods[: len(periods)] = periods
        self.periods[list(chain.outputs)] = 0
        self.size = prod(chain.shape)
        is_expensive = [step.operation >= EXPENSIVE for step in chain.instructions]
        self.work = self.size * sum(EXPONENTIAL if each else ELEMENT / 4 for each in is_expensive)


def _plan_of(chain: Any, inputs: Sequence[Array]) -> _Plan | None:
    """Return the plan for these inputs, which the chain keeps for the next ones; None if one does not fit."""
    for x in inputs:
        if not (x.dtype is FLOAT32 and x.flags.carray) and not is_plain(x):
            return None
    shapes, plan = [x.shape for x in inputs], chain.plan
    if plan is None or plan.shapes != shapes:
        periods = [_period(shape, chain.shape) for shape in shapes]
        plan = None if None in periods else _Plan(chain, shapes, periods)  # type: ignore[arg-type]
        chain.plan = plan
    return plan


def _period(own: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return after how many elements an operand repeats: 0 if it does not; None if it has another shape."""
    if own == shape:
        return 0
    if prod(own) == 1:
        return 1
    return prod(own) if own and own == shape[len(shape) - len(own) :] else None


@kernel("chain", BACKEND, accepts=plain_or_repeated)
def chain(first: Array, others: Sequence[Array], chain: Any) -> list[Array]:
    """Run a chain of elementwise operations in one pass over blocks that stay in the cache."""
    inputs = [first, *others]
    plan = _plan_of(chain, inputs)
    if plan is None:
        operands = ", ".join(f"{x.dtype}{list(x.shape)}" for x in inputs)
        raise ShapeError(f"chain: operands {operands} do not fit {list(chain.shape)}")
    results = [np.empty(chain.shape, FLOAT32) for _ in chain.outputs]
    places = [*map(address, inputs), *[0] * (chain.operands - len(inputs))]
    for i, y in zip(chain.outputs, results, strict=True):
        places[i] = address(y)
    arrays = chain.code, np.array(places, ADDRESS), plan.periods
    counts = len(chain.instructions), chain.operands
    by_range(_chain, arrays, plan.size, plan.work, *counts, scratch=BLOCK * chain.operands + LINE)
    return results


EXPENSIVE = 8  # operations from exp on

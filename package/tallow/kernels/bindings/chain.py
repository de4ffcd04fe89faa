"""chain; see src/elementwise/chain_f32.c."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import ELEMENT, EXPONENTIAL, by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.on_arrays import HEAD
from tallow.kernels.table import kernel

_chain = function("tl_chain_f32", None, *[POINTER] * 3, *[SIZE] * 4, POINTER)

BLOCK = 1024
LINE = 16  # floats of a cache line, to which C aligns the blocks
TEMPORARY = -1
EXPENSIVE = 8  # operations from exp on
ADDRESS = np.dtype(np.uintp)


class _Plan:
    """The parts of a call that are the same for all inputs of the same shapes.

    Attributes:
        shapes: of the inputs.
        periods: after how many elements an operand repeats: 0 if it does not; TEMPORARY for one of the program's own.
        no_places: of the operands that are not inputs.
        counts, scratch: of the C function.
        work: as for `by_steps`.
    """

    def __init__(self, chain: Any, shapes: list[tuple[int, ...]], periods: Sequence[int]) -> None:
        self.shapes = shapes
        self.no_places = [0] * (chain.operands - len(shapes))
        self.periods = np.full(chain.operands, TEMPORARY, np.int64)
        self.periods[: len(periods)] = periods
        self.periods[list(chain.outputs)] = 0
        self.counts = len(chain.instructions), chain.operands
        self.scratch = BLOCK * chain.operands + LINE
        self.size = prod(chain.shape)
        is_expensive = [step.operation >= EXPENSIVE for step in chain.instructions]
        self.work = self.size * sum(EXPONENTIAL if each else ELEMENT / 4 for each in is_expensive)


def _plan_of(chain: Any, inputs: Sequence[Array]) -> _Plan:
    """Return the plan for these inputs, which the chain keeps for the next ones. Raises: ShapeError"""
    shapes, plan = [x.shape for x in inputs], chain.plan
    if plan is None or plan.shapes != shapes:
        periods = [_period(shape, chain.shape) for shape in shapes]
        if None in periods:
            raise ShapeError(f"chain: operands of shapes {shapes} do not fit {list(chain.shape)}")
        chain.plan = plan = _Plan(chain, shapes, periods)  # type: ignore[arg-type]
    return plan


def _period(own: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return after how many elements an operand repeats: 0 if it does not; None if it has another shape."""
    if own == shape:
        return 0
    if prod(own) == 1:
        return 1
    return prod(own) if own and own == shape[len(shape) - len(own) :] else None


@kernel("chain", BACKEND)
def chain(_: Array, inputs: Sequence[Array], chain: Any) -> list[Array]:
    """Run a chain of elementwise operations in one pass over blocks that stay in the cache."""
    inputs = [x if x.dtype is FLOAT32 and x.flags.carray else contiguous(x) for x in inputs]
    plan = _plan_of(chain, inputs)
    results = [np.empty(chain.shape, FLOAT32) for _ in chain.outputs]
    places = [id(x) + HEAD for x in inputs] + plan.no_places
    for i, y in zip(chain.outputs, results, strict=True):
        places[i] = id(y) + HEAD
    arrays = chain.code, np.array(places, ADDRESS), plan.periods
    by_range(_chain, arrays, plan.size, plan.work, *plan.counts, scratch=plan.scratch)
    return results

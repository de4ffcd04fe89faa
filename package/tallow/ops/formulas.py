"""Formulas of arrays and numbers. The kernel of chains computes them in one pass over large arrays.

NumPy computes one operation after the other, each on whole arrays, which a million elements read from and write to
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tallow.dtypes import Array
from tallow.kernels import kernel, run
from tallow.kernels.table import PLANS, Limit
from tallow.ops.chain import Chain, Operation

FLOAT32 = np.dtype(np.float32)
OPERATIONS = {
    np.add: Operation.ADD,
    np.subtract: Operation.SUB,
    np.multiply: Operation.MUL,
    np.divide: Operation.DIV,
    np.maximum: Operation.MAX,
    np.minimum: Operation.MIN,
    np.absolute: Operation.ABS,
    np.exp: Operation.EXP,
}


class _Traced(NDArrayOperatorsMixin):
    """A value of a formula. Operators and functions of NumPy become steps: an operation, its result and operands."""

    __hash__, __eq__ = object.__hash__, object.__eq__  # values are the names of the operands of a chain

    def __init__(self, steps: list[tuple[Operation, _Traced, Any, Any]]) -> None:
        self.steps = steps

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any) -> _Traced:
        if ufunc is np.negative:
            ufunc, operands = np.multiply, (self, -1.0)
        result = _Traced(self.steps)
        self.steps.append((OPERATIONS[ufunc], result, operands[0], operands[-1]))
        return result


class Formula(NamedTuple):
    """An elementwise function, and what returns its chain for a shape and a number of operands; see `_chain`."""

    function: Callable[..., Any]
    chain_of: Callable[[tuple[int, ...], int], tuple[Chain, list[Array]]]


@kernel("formula", "array")
def formula_array(_: Array, formula: Formula, operands: tuple[Any, ...]) -> Any:
    """Compute one operation on whole arrays after the other."""
    return formula.function(*operands)


LIMIT = Limit("formula")


def formula(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute an elementwise function by the best kernel: of large float32 arrays of one shape in one pass.

    Its operations are those of `OPERATIONS`, and signs. Its operands are arrays and numbers.
    """

    own = Formula(function, lru_cache(PLANS)(partial(_chain, function)))

    @wraps(function)
    def call(*operands: Any) -> Any:
        first = operands[0]
        if type(first) is np.ndarray and first.size < LIMIT.size:
            return function(*operands)
        array = first if hasattr(first, "dtype") else next((x for x in operands if hasattr(x, "dtype")), None)
        if array is None:  # numbers, or values of the formula that calls this one, which is being traced
            return function(*operands)
        return run("formula", array, own, operands)

    return call


def _chain(function: Callable[..., Any], shape: tuple[int, ...], count: int) -> tuple[Chain, list[Array]]:
    """Return the chain for `count` operands of a shape, and the numbers of the function, which are its last inputs."""
    steps: list[tuple[Operation, _Traced, Any, Any]] = []
    values = [_Traced(steps) for _ in range(count)]
    function(*values)
    numbers = list(dict.fromkeys(x for step in steps for x in step[2:] if not isinstance(x, _Traced)))
    chain = Chain.of(steps, [*values, *numbers], [steps[-1][1]], shape, function.__name__)
    return chain, [np.full(1, x, FLOAT32) for x in numbers]

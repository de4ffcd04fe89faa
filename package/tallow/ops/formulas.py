"""Formulas of arrays and numbers. The kernel of chains computes them in one pass over large arrays.

NumPy computes one operation after the other, each on whole arrays, which a million elements read from and write to
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tallow.dtypes import Array
from tallow.kernels.table import PLANS
from tallow.ops.chain import Chain, Instruction, Operation

LEAST = 1 << 14  # elements; a chain takes longer than NumPy with fewer
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

    def __init__(self, steps: list[tuple[Operation, _Traced, Any, Any]]) -> None:
        self.steps = steps

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any) -> _Traced:
        if ufunc is np.negative:
            ufunc, operands = np.multiply, (self, -1.0)
        result = _Traced(self.steps)
        self.steps.append((OPERATIONS[ufunc], result, operands[0], operands[-1]))
        return result


def formula(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute an elementwise function in one pass if its operands are large float32 arrays of one shape, and numbers.

    Its operations are those of `OPERATIONS`, and signs. Other operands, broadcast ones too, are passed to it.
    """

    chain_of = lru_cache(PLANS)(partial(_chain, function))

    @wraps(function)
    def call(*operands: Any) -> Any:
        first = operands[0]
        if type(first) is not np.ndarray or first.size < LEAST:
            return function(*operands)
        inputs = [_input(x, first.shape) for x in operands]
        if any(x is None for x in inputs):
            return function(*operands)
        chain, numbers = chain_of(first.shape, len(inputs))
        return chain(*inputs, *numbers)[0]

    return call


def _chain(function: Callable[..., Any], shape: tuple[int, ...], count: int) -> tuple[Chain, list[Array]]:
    """Return the chain for `count` operands of a shape, and the numbers of the function, which are its last inputs."""
    steps: list[tuple[Operation, _Traced, Any, Any]] = []
    values = [_Traced(steps) for _ in range(count)]
    function(*values)
    numbers = list(dict.fromkeys(x for step in steps for x in step[2:] if not isinstance(x, _Traced)))
    inputs = count + len(numbers)
    place = {id(x): i for i, x in enumerate(values)} | {id(step[1]): inputs + i for i, step in enumerate(steps)}
    instructions = []
    for operation, result, *pair in steps:
        for i, x in enumerate(pair):
            pair[i] = place[id(x)] if isinstance(x, _Traced) else count + numbers.index(x)
        instructions.append(Instruction(operation, place[id(result)], *pair))
    operands = inputs + len(steps)
    chain = Chain(instructions, inputs, [operands - 1], operands, shape, function.__name__)
    return chain, [np.full(1, x, FLOAT32) for x in numbers]


def _input(x: Any, shape: tuple[int, ...]) -> Array | None:
    """Return an operand of a chain: a contiguous array, or one element for all; None for another operand."""
    if type(x) in (int, float):
        return np.full(1, x, FLOAT32)
    if x.dtype != FLOAT32 or x.shape != shape:
        return None
    if not any(x.strides):  # the gradient of a sum
        return x.reshape(-1)[:1]
    return x if x.flags.c_contiguous else None

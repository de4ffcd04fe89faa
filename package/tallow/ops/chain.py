"""Programs of elementwise operations on float32 arrays, which one kernel runs in one pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from tallow.dtypes import Array
from tallow.kernels import kernel, run


class Operation(IntEnum):
    """The operations, numbered as in kernels/src/elementwise/chain_f32.c."""

    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    MAX = 4
    MIN = 5
    SQRT = 6
    ABS = 7
    EXP = 8
    TANH = 9
    SIGMOID = 10
    SILU = 11
    RELU = 12


ONE, ZERO = np.float32(1), np.float32(0)
FUNCTIONS: dict[Operation, Callable[..., Any]] = {
    Operation.ADD: np.add,
    Operation.SUB: np.subtract,
    Operation.MUL: np.multiply,
    Operation.DIV: np.divide,
    Operation.MAX: np.maximum,
    Operation.MIN: np.minimum,
    Operation.SQRT: lambda x, _: np.sqrt(x),
    Operation.ABS: lambda x, _: np.abs(x),
    Operation.EXP: lambda x, _: np.exp(x),
    Operation.TANH: lambda x, _: np.tanh(x),
    Operation.SIGMOID: lambda x, _: ONE / (ONE + np.exp(-x)),
    Operation.SILU: lambda x, _: x / (ONE + np.exp(-x)),
    Operation.RELU: lambda x, _: np.maximum(x, ZERO),
}


class Instruction(NamedTuple):
    """One operation: the indices of its result and its operands; those with one operand repeat it."""

    operation: Operation
    result: int
    a: int
    b: int


class Chain:
    """A program of elementwise operations.

    Attributes:
        instructions: in order.
        inputs: the number of operands that are passed; they come first.
        outputs: indices of the operands that are returned.
        operands: the number of inputs, outputs and temporary results.
        shape: of the outputs. An input has this shape, or the last dims of it, or one element.
        plan: what the kernel has derived from the shapes of the last inputs.
    """

    plan: Any = None

    def __init__(
        self,
        instructions: Sequence[Instruction],
        inputs: int,
        outputs: Sequence[int],
        operands: int,
        shape: tuple[int, ...],
        name: str = "chain",
    ) -> None:
        self.instructions = tuple(instructions)
        self.inputs, self.outputs, self.operands, self.shape = inputs, tuple(outputs), operands, shape
        self.__name__ = name
        self.code = np.array(self.instructions, np.int32)  # kept here, so that its address stays valid

    @classmethod
    def of(
        cls,
        steps: Sequence[tuple[Operation, Hashable, Hashable, Hashable]],
        inputs: Sequence[Hashable],
        outputs: Sequence[Hashable],
        shape: tuple[int, ...],
        name: str = "chain",
    ) -> Chain:
        """Return the chain of steps: an operation, its result and two operands, each named by any value.

        A result that no later step reads leaves its place to the next ones, so that a program stays in the first cache.
        Steps that no output depends on are left out, so that the last step makes an output, as the kernel expects.
        """
        needed = set(outputs)
        for _, result, a, b in reversed(steps):
            if result in needed:
                needed.update((a, b))
        steps = [step for step in steps if step[1] in needed]
        place = {x: i for i, x in enumerate(inputs)}
        last_use = {x: i for i, step in enumerate(steps) for x in step[2:]}
        kept, free, operands, instructions = {*inputs, *outputs}, [], len(place), []
        for i, (operation, result, a, b) in enumerate(steps):
            at = place[a], place[b]
            free += [place[x] for x in dict.fromkeys((a, b)) if x not in kept and last_use[x] == i]
            if result not in kept and free:
                place[result] = free.pop()
            else:
                place[result], operands = operands, operands + 1
            instructions.append(Instruction(operation, place[result], *at))
        return cls(instructions, len(inputs), [place[x] for x in outputs], operands, shape, name)

    def __call__(self, *arrays: Array) -> list[Array]:
        """Return the outputs for float32 arrays."""
        values: list[Array] = run("chain", arrays[0], arrays, self)
        return values


@kernel("chain", "array")
def chain_array(_: Array, inputs: Sequence[Array], chain: Chain) -> list[Array]:
    """Run a chain, one operation on whole arrays after the other."""
    values: list[Any] = [*inputs, *[None] * (chain.operands - chain.inputs)]
    for operation, result, a, b in chain.instructions:
        values[result] = FUNCTIONS[operation](values[a], values[b])
    return [values[i] for i in chain.outputs]

"""Fuse chains of elementwise ops of a plan into one pass over blocks that stay in the cache.

A chain is a run of consecutive calls of elementwise ops on float32 values of one shape, without closures. It becomes a
`Chain`, a program that one kernel interprets; see tallow.ops.chain. Values that nothing else of the plan reads are
never written to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallow.compiler.recording import Line, Name, OpCall
from tallow.dtypes import Array
from tallow.kernels.library import IN_BROWSER
from tallow.ops.chain import Chain, Instruction, Operation

LEAST_OPS = 2
# With fewer elements the call of the kernel takes longer than NumPy's operations, which have no SIMD in a browser.
LEAST_ELEMENTS = 1 << 12 if IN_BROWSER else 1 << 15
MOST_OPERANDS = 24  # so that the blocks of all operands stay in the second cache
FLOAT32 = np.dtype(np.float32)

Operand = Any  # a name, a number, or the result of an instruction
Emit = Callable[..., Operand]
Lowering = Callable[..., Operand]


def _binary(operation: Operation) -> Lowering:
    return lambda emit, a, b: emit(operation, a, b)


def _unary(operation: Operation) -> Lowering:
    return lambda emit, a: emit(operation, a, a)


def _power(emit: Emit, a: Operand, exponent: Operand) -> Operand:
    square = emit(Operation.MUL, a, a)
    return square if exponent == 2 else emit(Operation.MUL, square, a)


def _clamp(emit: Emit, a: Operand, low: Operand = None, high: Operand = None) -> Operand:
    """As NumPy's clip: the lower bound first."""
    a = a if low is None else emit(Operation.MAX, a, low)
    return a if high is None else emit(Operation.MIN, a, high)


O = Operation
# How each op is written as instructions. They round as the array function does, except exp, tanh and sigmoid.
LOWERINGS: dict[str, Lowering] = {
    "add": _binary(O.ADD),
    "sub": _binary(O.SUB),
    "rsub": lambda emit, a, b: emit(O.SUB, b, a),
    "mul": _binary(O.MUL),
    "div": _binary(O.DIV),
    "maximum": _binary(O.MAX),
    "minimum": _binary(O.MIN),
    "neg": lambda emit, a: emit(O.MUL, a, -1.0),
    "square": lambda emit, a: emit(O.MUL, a, a),
    "reciprocal": lambda emit, a: emit(O.DIV, 1.0, a),
    "rsqrt": lambda emit, a: emit(O.DIV, 1.0, emit(O.SQRT, a, a)),
    "pow": _power,
    "clamp": _clamp,
    "sqrt": _unary(O.SQRT),
    "abs": _unary(O.ABS),
    "exp": _unary(O.EXP),
    "tanh": _unary(O.TANH),
    "sigmoid": _unary(O.SIGMOID),
    "silu": _unary(O.SILU),
    "relu": _unary(O.RELU),
}


class Fused(Line):
    """The statement of a chain. `ops` are the names of the ops that it replaces."""

    ops: tuple[str, ...] = ()


def fuse(
    lines: list[Line | OpCall], arrays: dict[str, Array], is_used: Callable[[Name, int, int], bool],
    constant: Callable[[Any, str], Name], closures: set[str],
) -> list[tuple[int, int, Fused]]:  # fmt: skip
    """Find the chains of a plan.

    Args:
        arrays: the arrays of the recording, by name.
        is_used: whether anything outside of lines first to last - 1 reads a name.
        constant: names an object that the plan holds.
        closures: the closures that the plan reads.

    Returns: (first, last, statement) of each: the lines from `first` to `last` - 1, and what replaces them.
    """
    chains = []
    start = 0
    while start < len(lines):
        end, builder = start, _Builder(arrays)
        while end < len(lines) and builder.takes(lines[end], closures):
            end += 1
        if end - start >= LEAST_OPS and (statement := builder.finish(lines[start:end], start, is_used, constant)):
            chains.append((start, end, statement))
        start = max(end, start + 1)
    return chains


class _Builder:
    """Collects the instructions of one chain, over symbolic operands."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays
        self.shape: tuple[int, ...] | None = None
        self.instructions: list[tuple[Operation, Operand, Operand, Operand]] = []
        self.made: set[str] = set()
        self.count = 0
        self.operands: dict[Any, None] = {}

    def takes(self, line: Line | OpCall, closures: set[str]) -> bool:
        """Add a line to the chain. Return False, and change nothing, if it cannot be part of it."""
        if not isinstance(line, OpCall) or line.op.name not in LOWERINGS or not self._fits(line, closures):
            return False
        (name,) = line.outputs
        before = len(self.instructions)

        def emit(operation: Operation, a: Operand, b: Operand) -> Operand:
            self.count += 1
            result = ("t", self.count)
            self.instructions.append((operation, result, a, b))
            return result

        result = LOWERINGS[line.op.name](emit, *line.args)
        operation, last, a, b = self.instructions[-1]
        assert last == result, line.op.name
        self.instructions[-1] = (operation, name, a, b)
        operands = {x: None for step in self.instructions for x in step[1:]}
        if len(operands) > MOST_OPERANDS:
            del self.instructions[before:]
            return False
        self.operands, self.shape = operands, self.arrays[name].shape
        self.made.add(name)
        return True

    def _fits(self, line: OpCall, closures: set[str]) -> bool:
        """Return whether a call is of the chain's shape and of plain float32 operands."""
        if line.general or line.is_several or line.has_effect or line.after or line.kwargs or line.closure in closures:
            return False
        y = self.arrays[line.outputs[0]]
        if y.dtype != FLOAT32 or y.size < LEAST_ELEMENTS or not y.flags.c_contiguous:
            return False
        if self.shape not in (None, y.shape):
            return False
        if line.op.name == "pow" and line.args[1] not in (2, 3):
            return False
        is_array = [isinstance(x, Name) for x in line.args]
        if not any(is_array) or (line.op.name == "clamp" and any(is_array[1:])):
            return False
        return all(
            self._is_plain(x, y.shape) if isinstance(x, Name) else x is None or type(x) in (int, float)
            for x in line.args
        )

    def _is_plain(self, name: Name, shape: tuple[int, ...]) -> bool:
        x = self.arrays[name]
        fits = x.shape == shape or x.size == 1 or (x.ndim > 0 and x.shape == shape[len(shape) - x.ndim :])
        return type(x) is np.ndarray and x.dtype == FLOAT32 and x.flags.c_contiguous and x.flags.aligned and fits

    def finish(
        self, lines: list[Any], start: int, is_used: Callable[[Name, int, int], bool],
        constant: Callable[[Any, str], Name],
    ) -> Fused | None:  # fmt: skip
        """Return the statement of the chain; None if there is nothing to run."""
        assert self.shape is not None
        outputs = [line.outputs[0] for line in lines if is_used(line.outputs[0], start, start + len(lines))]
        if not outputs:
            return None
        results = {step[1] for step in self.instructions}
        inputs = [x for x in self.operands if x not in results]
        names = [x for x in inputs if isinstance(x, Name)]
        # Names come first, then numbers as arrays of one element, then results.
        numbers = [x for x in inputs if not isinstance(x, Name)]
        index = {x: i for i, x in enumerate([*names, *numbers])}
        operands = len(index)
        free: list[int] = []
        last_use = {x: i for i, step in enumerate(self.instructions) for x in step[2:]}
        instructions = []
        for i, (operation, result, a, b) in enumerate(self.instructions):
            at = index[a], index[b]
            for x in dict.fromkeys((a, b)):
                if x in results and x not in outputs and last_use[x] == i:
                    free.append(index[x])
            if result not in outputs and free:
                index[result] = free.pop()
            else:
                index[result], operands = operands, operands + 1
            instructions.append(Instruction(operation, index[result], *at))
        ops = tuple(line.op.name for line in lines)
        chain = Chain(instructions, len(names) + len(numbers), [index[x] for x in outputs], operands, self.shape)
        program = constant(chain, "chain")
        passed = [*names, *(constant(np.array(x, np.float32), "k") for x in numbers)]
        text = f"{', '.join(outputs)}, = {program}({', '.join(passed)})  # {', '.join(ops)}"
        statement = Fused(text, tuple(names), tuple(outputs))
        statement.ops = ops
        return statement

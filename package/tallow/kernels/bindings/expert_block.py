"""experts: see tallow.kernels.blocks.expert_block and src/blocks/experts_f32.c."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings import stages
from tallow.kernels.bindings.arrays import FLOAT32, address, contiguous
from tallow.kernels.bindings.matrices import Part, can_be_packed, work
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.expert_block import ExpertBlock, check_call
from tallow.kernels.library import BACKEND, IN_BROWSER, POINTER, SIZE, function
from tallow.kernels.table import kernel

STAGES = 4


class _Expert(ctypes.Structure):
    """`expert` of experts_f32.c."""

    _fields_ = [("gate", Part), ("up", Part), ("down", Part), ("weight", ctypes.c_float)]


class _Mixture(ctypes.Structure):
    """`mixture` of experts_f32.c."""

    _fields_ = [("experts", POINTER), ("count", SIZE), ("width", SIZE), ("hidden", SIZE)]


class _Call(ctypes.Structure):
    """`mixture_call` of experts_f32.c."""

    _fields_ = [("y", POINTER), ("x", POINTER), ("scratch", POINTER), ("stages", stages.Stages)]


class _Packed:
    """The C struct of an expert. Its addresses are valid as long as the block, which owns the arrays and this."""

    __slots__ = ("struct", "work")

    def __init__(self, block: ExpertBlock) -> None:
        self.struct = _Expert(*[Part.of(part) for _, part in _parts(block)], 0)
        self.work = sum(map(work, block.matrices))


def _parts(block: ExpertBlock) -> list[tuple[str, Affine]]:
    return [("", Affine(matrix, None)) for matrix in block.matrices]


def float32_row(x: Array, blocks: Sequence[ExpertBlock], weights: Array) -> bool:
    """Float32 x and weights, and contiguous, aligned matrices in formats that the library multiplies."""
    if x.dtype != FLOAT32 or weights.dtype != FLOAT32:
        return False
    return all(block.packed is not None or can_be_packed(_parts(block)) for block in blocks)


if not IN_BROWSER:
    _experts = function("tl_experts_f32", None, POINTER, POINTER, POINTER)
    _scratch = function("tl_experts_scratch", SIZE, POINTER)

    @kernel("experts", BACKEND, accepts=float32_row)
    def experts(x: Array, blocks: Sequence[ExpertBlock], weights: Array) -> Array:
        """Compute tallow.kernels.blocks.expert_block.experts."""
        check_call(x, blocks, weights)
        for block in blocks:
            if block.packed is None:
                block.packed = _Packed(block)
        packed: list[_Packed] = [block.packed for block in blocks]  # type: ignore[misc]
        chosen = (_Expert * len(blocks))(*[each.struct for each in packed])
        for struct, weight in zip(chosen, weights.tolist(), strict=True):
            struct.weight = weight
        hidden, width = blocks[0].gate.shape
        mixture = _Mixture(ctypes.addressof(chosen), len(blocks), width, hidden)
        pointer = ctypes.addressof(mixture)
        x, y = contiguous(x), np.zeros(width, FLOAT32)
        scratch = np.empty(_scratch(pointer), FLOAT32)
        call = _Call(address(y), address(x), address(scratch))
        multiplications = sum(each.work for each in packed)
        stages.run(call.stages, STAGES, multiplications, _experts, pointer, ctypes.addressof(call), 0)
        return y

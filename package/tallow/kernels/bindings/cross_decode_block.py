"""cross_decode_block: see tallow.kernels.blocks.cross_decode_block and src/blocks/cross_decode_block_f32.c."""

from __future__ import annotations

import ctypes

import numpy as np

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings import stages
from tallow.kernels.bindings.arrays import FLOAT32, address
from tallow.kernels.bindings.matrices import Part, can_be_packed, is_plain, work
from tallow.kernels.blocks.cross_decode_block import NORMS, PARTS, CrossDecodeBlock, check_call
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_cross_decode_block = function("tl_cross_decode_block_f32", None, POINTER, POINTER, POINTER)
_shared = function("tl_cross_decode_shared", SIZE, POINTER, POINTER)
_private = function("tl_cross_decode_private", SIZE, POINTER, POINTER)
STAGES = 16


class _Block(ctypes.Structure):
    """`cross_decode_block` of cross_decode_block_f32.c: first each part."""

    _fields_ = [
        ("parts", Part * len(PARTS)),
        ("width", SIZE), ("heads", SIZE), ("hidden", SIZE),
        ("eps", ctypes.c_float),
    ]  # fmt: skip


class _Call(ctypes.Structure):
    """`cross_decode_call` of cross_decode_block_f32.c."""

    _fields_ = [
        ("x", POINTER), ("keys", POINTER), ("values", POINTER), ("cross_keys", POINTER), ("cross_values", POINTER),
        ("rows", SIZE), ("sounds", SIZE), ("positions", SIZE), ("heard", SIZE), ("position", SIZE),
        ("scratch", POINTER), ("stages", stages.Stages),
    ]  # fmt: skip


class _Packed:
    """The C struct of a block. Its addresses are valid as long as the block, which owns the arrays and this object."""

    __slots__ = ("pointer", "struct", "work")

    def __init__(self, block: CrossDecodeBlock) -> None:
        if not can_be_packed(block.parts()):
            raise KernelUnavailable("cross_decode_block: the block's arrays do not meet the kernel's requirements")
        parts = (Part * len(PARTS))(*[Part.of(part) for _, part in block.parts()])
        self.struct = _Block(parts, block.width, block.heads, block.hidden, block.eps)
        self.pointer = ctypes.addressof(self.struct)
        self.work = sum(work(part.weight) for name, part in block.parts() if name not in NORMS)


def contiguous_call(
    x: Array,
    block: CrossDecodeBlock,
    keys: Array,
    values: Array,
    cross_keys: Array,
    cross_values: Array,
    position: int,
) -> bool:
    """Contiguous, aligned float32 arrays, a writable cache, and matrices in formats that the library multiplies."""
    if not (keys.flags.writeable and values.flags.writeable and x.dtype == FLOAT32):
        return False
    if not all(is_plain(each) and each.dtype == FLOAT32 for each in (keys, values, cross_keys, cross_values)):
        return False
    return block.packed is not None or can_be_packed(block.parts())


@kernel("cross_decode_block", BACKEND, accepts=contiguous_call)
def cross_decode_block(
    x: Array,
    block: CrossDecodeBlock,
    keys: Array,
    values: Array,
    cross_keys: Array,
    cross_values: Array,
    position: int,
) -> Array:
    """Compute tallow.kernels.blocks.cross_decode_block.cross_decode_block."""
    check_call(x, block, keys, values, cross_keys, cross_values, position)
    if not contiguous_call(x, block, keys, values, cross_keys, cross_values, position):
        raise KernelUnavailable(
            "cross_decode_block: an array does not meet the kernel's requirements; see kernels.explain"
        )
    if block.packed is None:
        block.packed = _Packed(block)
    packed: _Packed = block.packed  # type: ignore[assignment]
    y = np.array(x, FLOAT32, order="C")
    heard = cross_keys.shape[2]
    call = _Call(
        *map(address, (y, keys, values, cross_keys, cross_values)),
        len(x), len(cross_keys), keys.shape[2], heard, position,
    )  # fmt: skip
    pointer = ctypes.addressof(call)
    scratch = np.empty(_shared(packed.pointer, pointer), FLOAT32)
    call.scratch = address(scratch)
    multiplications, private = len(x) * (packed.work + 2.0 * heard * block.width), _private(packed.pointer, pointer)
    stages.run(call.stages, STAGES, multiplications, _cross_decode_block, packed.pointer, pointer, private)
    return y

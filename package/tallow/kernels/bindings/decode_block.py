"""decode_block: see tallow.kernels.decode_block and src/decode_block_f32.c."""

from __future__ import annotations

import ctypes

import numpy as np

from tallow.dtypes import BF16, F16, Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, address, compiled
from tallow.kernels.decode_block import DecodeBlock, check_call
from tallow.kernels.library import POINTER, SIZE, function

_decode_block = function("tl_decode_block_f32", None, POINTER, POINTER, SIZE)
_scratch = function("tl_decode_block_scratch", SIZE, *[SIZE] * 6)
_WEIGHTS = {FLOAT32: 0, F16: 1, BF16: 2}


class _Struct(ctypes.Structure):
    """`decode_block` of decode_block_f32.c, field by field: first the arrays in the order of DecodeBlock.arrays."""

    _fields_ = [
        ("arrays", POINTER * 13), ("scratch", POINTER),
        ("width", SIZE), ("heads", SIZE), ("kv_heads", SIZE), ("head_width", SIZE), ("hidden", SIZE),
        ("positions", SIZE),
        ("weights", ctypes.c_int32), ("interleaved", ctypes.c_int32), ("eps", ctypes.c_float),
    ]  # fmt: skip


class _Packed:
    """What C is given for a block. The addresses stay good as long as the block, which owns the arrays and this."""

    __slots__ = ("pointer", "scratch", "struct")

    def __init__(self, block: DecodeBlock) -> None:
        if not _can_be_packed(block):
            raise KernelUnavailable("decode_block: the block's arrays are not as C needs them; see kernels.explain")
        sizes = (block.width, block.heads, block.kv_heads, block.head_width, block.hidden, block.positions)
        self.scratch = np.empty(_scratch(*sizes), FLOAT32)
        addresses = (POINTER * 13)(*map(address, block.arrays))
        weights = _WEIGHTS[block.query.dtype]  # type: ignore[union-attr]  # not a QuantizedMatrix, which is not packed
        self.struct = _Struct(addresses, address(self.scratch), *sizes, weights, block.interleaved, block.eps)
        self.pointer = ctypes.addressof(self.struct)


def contiguous_block(x: Array, block: DecodeBlock, position: int) -> bool:
    """A float32 array, and a block whose arrays are NumPy's, contiguous and aligned, with writable float32 caches."""
    return x.dtype == FLOAT32 and isinstance(position, int) and (block.packed is not None or _can_be_packed(block))


def _can_be_packed(block: DecodeBlock) -> bool:
    if not all(cache.dtype == FLOAT32 and cache.flags.writeable for cache in (block.key_cache, block.value_cache)):
        return False
    return all(isinstance(a, np.ndarray) and a.flags.c_contiguous and a.flags.aligned for a in block.arrays)


@compiled("decode_block", contiguous_block)
def decode_block(x: Array, block: DecodeBlock, position: int) -> Array:
    """As tallow.kernels.decode_block.decode_block. A block serves one caller at a time: it owns the scratch memory."""
    check_call(x, block, position)
    if block.packed is None:
        block.packed = _Packed(block)
    y = np.array(x, FLOAT32, order="C")
    _decode_block(block.packed.pointer, address(y), position)  # type: ignore[attr-defined]
    return y

"""cross_decode_block: see tallow.kernels.cross_decode_block and src/cross_decode_block_f32.c."""

from __future__ import annotations

import ctypes

import numpy as np

from tallow.dtypes import BF16, F16, Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, address, compiled, optional_address
from tallow.kernels.bindings.threads import in_parts
from tallow.kernels.cross_decode_block import PARTS, CrossDecodeBlock, check_call
from tallow.kernels.library import POINTER, SIZE, function

_cross_decode_block = function("tl_cross_decode_block_f32", None, POINTER, POINTER, POINTER)
_scratch = function("tl_cross_decode_block_scratch", SIZE, POINTER, POINTER)
_WEIGHTS = {FLOAT32: 0, F16: 1, BF16: 2}


class _Block(ctypes.Structure):
    """`cross_decode_block` of cross_decode_block_f32.c: first each part's weight and bias."""

    _fields_ = [
        ("parts", POINTER * (2 * len(PARTS))),
        ("width", SIZE), ("heads", SIZE), ("hidden", SIZE),
        ("weights", ctypes.c_int32), ("eps", ctypes.c_float),
    ]  # fmt: skip


class _Call(ctypes.Structure):
    """`cross_decode_call` of cross_decode_block_f32.c."""

    _fields_ = [
        ("x", POINTER), ("keys", POINTER), ("values", POINTER), ("cross_keys", POINTER), ("cross_values", POINTER),
        ("rows", SIZE), ("sounds", SIZE), ("positions", SIZE), ("heard", SIZE), ("position", SIZE),
    ]  # fmt: skip


class _Packed:
    """What C is given for a block. The addresses stay good as long as the block, which owns the arrays and this."""

    __slots__ = ("pointer", "struct", "work")

    def __init__(self, block: CrossDecodeBlock) -> None:
        if not _can_be_packed(block):
            raise KernelUnavailable("cross_decode_block: the block's arrays are not as C needs them")
        addresses = [optional_address(array) for _, part in block.parts() for array in part]
        parts = (POINTER * len(addresses))(*addresses)
        weights = _WEIGHTS[block.query.weight.dtype]
        self.struct = _Block(parts, block.width, block.heads, block.hidden, weights, block.eps)
        self.pointer = ctypes.addressof(self.struct)
        self.work = sum(part.weight.size for _, part in block.parts())


def contiguous_call(
    x: Array,
    block: CrossDecodeBlock,
    keys: Array,
    values: Array,
    cross_keys: Array,
    cross_values: Array,
    position: int,
) -> bool:
    """float32 arrays, all contiguous and aligned, as those of the block, and a writable cache."""
    if not (keys.flags.writeable and values.flags.writeable and x.dtype == FLOAT32):
        return False
    if not all(_is_plain(each) and each.dtype == FLOAT32 for each in (keys, values, cross_keys, cross_values)):
        return False
    return block.packed is not None or _can_be_packed(block)


def _can_be_packed(block: CrossDecodeBlock) -> bool:
    return all(array is None or _is_plain(array) for _, part in block.parts() for array in part)


def _is_plain(array: Array) -> bool:
    return isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned


@compiled("cross_decode_block", contiguous_call)
def cross_decode_block(
    x: Array,
    block: CrossDecodeBlock,
    keys: Array,
    values: Array,
    cross_keys: Array,
    cross_values: Array,
    position: int,
) -> Array:
    """As tallow.kernels.cross_decode_block.cross_decode_block."""
    check_call(x, block, keys, values, cross_keys, cross_values, position)
    if not contiguous_call(x, block, keys, values, cross_keys, cross_values, position):
        raise KernelUnavailable("cross_decode_block: an array is not as C needs it; see kernels.explain")
    if block.packed is None:
        block.packed = _Packed(block)
    packed: _Packed = block.packed  # type: ignore[assignment]
    y = np.array(x, FLOAT32, order="C")
    sounds, heard = cross_keys.shape[0], cross_keys.shape[2]
    shared = len(x) // sounds
    # Rows of one sound, or else whole sounds, are what threads share out.
    units, unit_rows = (len(x), 1) if sounds == 1 else (sounds, shared)
    own = [(address(array), array.nbytes // len(x)) for array in (y, keys, values)]
    cross = [(address(array), array.nbytes // sounds) for array in (cross_keys, cross_values)]

    def part(first: int, last: int) -> None:
        first_sound, part_sounds = (0, 1) if sounds == 1 else (first, last - first)
        call = _Call(
            *(start + first * unit_rows * step for start, step in own),
            *(start + first_sound * step for start, step in cross),
            (last - first) * unit_rows, part_sounds, keys.shape[2], heard, position,
        )  # fmt: skip
        pointer = ctypes.addressof(call)
        scratch = np.empty(_scratch(packed.pointer, pointer), FLOAT32)
        _cross_decode_block(packed.pointer, pointer, address(scratch))

    in_parts(units, len(x) * (packed.work + 2.0 * heard * block.width), part)
    return y

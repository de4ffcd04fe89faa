"""encoder_blocks: see tallow.kernels.blocks.encoder_block and src/blocks/encoder_block_f32.c."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings.arrays import FLOAT32, address, contiguous, new_memory, optional_address
from tallow.kernels.bindings.matrices import Part, can_be_packed
from tallow.kernels.bindings.threads import by_range, threads_for
from tallow.kernels.blocks.encoder_block import ACTIVATIONS, PARTS, EncoderBlock, check_call
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_to_panels = function("tl_to_panels", None, POINTER, POINTER, SIZE, SIZE)
_from_panels = function("tl_from_panels", None, POINTER, POINTER, SIZE, SIZE)
_project = function("tl_encoder_project", None, *[POINTER] * 5, *[SIZE] * 3, POINTER)
_attend = function("tl_encoder_attend", None, *[POINTER] * 5, SIZE, POINTER, SIZE, SIZE, POINTER)
_finish = function("tl_encoder_finish", None, *[POINTER] * 3, *[SIZE] * 3, POINTER)
_all_steps = function(
    "tl_encoder_blocks", None, POINTER, SIZE, *[POINTER] * 4, SIZE, POINTER, SIZE, SIZE, POINTER, POINTER
)
_scratch = function("tl_encoder_scratch", SIZE, POINTER, SIZE)
PANEL: int = function("tl_encoder_panel", SIZE)()


class _Block(ctypes.Structure):
    """`encoder_block` of encoder_block_f32.c: first each part."""

    _fields_ = [
        ("parts", Part * len(PARTS)),
        ("width", SIZE), ("heads", SIZE), ("hidden", SIZE),
        ("activation", ctypes.c_int32), ("eps", ctypes.c_float),
    ]  # fmt: skip


class _Packed:
    """The C struct of a block. Its addresses are valid as long as the block, which owns the arrays and this object."""

    __slots__ = ("pointer", "struct")

    def __init__(self, block: EncoderBlock) -> None:
        if not can_be_packed(block.parts()):
            raise KernelUnavailable("encoder_blocks: a block's arrays do not meet the kernel's requirements")
        parts = (Part * len(PARTS))(*[Part.of(part) for _, part in block.parts()])
        activation = ACTIVATIONS.index(block.activation)
        self.struct = _Block(parts, block.width, block.heads, block.hidden, activation, block.eps)
        self.pointer = ctypes.addressof(self.struct)


def _pointer(block: EncoderBlock) -> int:
    if block.packed is None:
        block.packed = _Packed(block)
    packed: _Packed = block.packed  # type: ignore[assignment]
    return packed.pointer


def contiguous_blocks(x: Array, blocks: Sequence[EncoderBlock], offsets: Array, seen: Array | None) -> bool:
    """A float32 x, and blocks of contiguous, aligned arrays in formats that the library multiplies."""
    ours = isinstance(x, np.ndarray) and x.dtype == FLOAT32
    return ours and all(block.packed is not None or can_be_packed(block.parts()) for block in blocks)


@kernel("encoder_blocks", BACKEND, accepts=contiguous_blocks)
def encoder_blocks(x: Array, blocks: Sequence[EncoderBlock], offsets: Array, seen: Array | None) -> Array:
    """Compute tallow.kernels.blocks.encoder_block.encoder_blocks."""
    check_call(x, blocks, offsets, seen)
    if not contiguous_blocks(x, blocks, offsets, seen):
        raise KernelUnavailable("encoder_blocks: an array does not meet the kernel's requirements; see kernels.explain")
    x, y = contiguous(x), np.empty(x.shape, FLOAT32)
    if not x.size:
        return y
    rows, width = x.shape
    offsets = np.array(offsets, np.uintp, order="C")
    lengths = offsets[1:] - offsets[:-1]
    texts, longest = len(lengths), int(lengths.max())
    seen = None if seen is None else np.array(seen, np.bool_, order="C")
    panels = -(-rows // PANEL)
    size = panels * PANEL * width
    memory = new_memory(4 * size)
    state, query, key, value = (address(memory) + i * size * FLOAT32.itemsize for i in range(4))

    starts, mask = address(offsets), optional_address(seen)
    pointers = [_pointer(block) for block in blocks]
    scratch = max(_scratch(pointer, longest) for pointer in pointers)
    _to_panels(state, address(x), rows, width)
    square, hidden = float(rows * width * width), max(block.hidden for block in blocks)
    if threads_for(4 * square + 2.0 * rows * width * hidden) == 1:
        of_blocks = np.array(pointers, np.uintp)
        shared = (state, query, key, value, rows, starts, texts, longest, mask)
        own = new_memory(scratch)
        _all_steps(address(of_blocks), len(blocks), *shared, address(own))
    else:
        among = 2.0 * width * float(lengths @ lengths)
        for block, pointer in zip(blocks, pointers, strict=True):
            for kernel_of_part, before, count, work in (
                (_project, (pointer, query, key, value, state, rows), panels, 3 * square),
                (_attend, (pointer, query, key, value, starts, longest, mask), texts * block.heads, among),
                (_finish, (pointer, state, query, rows), panels, square + 2.0 * rows * width * block.hidden),
            ):
                by_range(kernel_of_part, before, count, work, scratch=scratch)
    _from_panels(address(y), state, rows, width)
    return y

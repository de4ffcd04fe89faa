"""decode_block, as a stack of one block; see tallow.kernels.blocks.decode_block and src/blocks/decode_blocks_f32.c."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32
from tallow.kernels.bindings.decode_stack import PackedStack, are_integers, block_can_be_packed, computed
from tallow.kernels.blocks.decode_block import Block, check_call
from tallow.kernels.blocks.decode_stack import DecodeStack, check_rows
from tallow.kernels.library import BACKEND
from tallow.kernels.table import kernel, run


def float32_rows(x: Array, block: Block, places: int | Array) -> bool:
    """Float32 rows, and a block of contiguous, aligned NumPy arrays, with writable caches."""
    if x.dtype != FLOAT32 or not are_integers(places):
        return False
    return block.packed is not None or block_can_be_packed(block)


@kernel("decode_block", BACKEND, accepts=float32_rows)
def decode_block(x: Array, block: Block, places: int | Array) -> Array:
    """Compute tallow.kernels.blocks.decode_block.decode_block, as a stack of one block."""
    return by_stack(x, block, places)


def by_stack(x: Array, block: Block, places: int | Array) -> Array:
    """Compute a block of any kind as a stack of one block."""
    if block.packed is None:
        block.packed = PackedStack(DecodeStack([block], None, block.eps))
    check_call(x, block, places)
    if not isinstance(places, int):
        check_rows(x, DecodeStack([block], None, block.eps), places)
    y = computed(x, block.packed, places)  # type: ignore[arg-type]
    if block.mlp is not None:
        y += block.mlp(run("rms_norm", y.reshape(-1, block.width), block.mlp_norm, block.eps)).reshape(y.shape)
    return y

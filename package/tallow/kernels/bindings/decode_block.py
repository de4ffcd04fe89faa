"""decode_block, as a stack of one block; see tallow.fused.decode_block and src/decode_blocks_f32.c."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.fused.decode_block import DecodeBlock, check_call
from tallow.fused.decode_stack import DecodeStack
from tallow.kernels.bindings.arrays import FLOAT32
from tallow.kernels.bindings.decode_stack import PackedStack, block_can_be_packed, computed
from tallow.kernels.library import BACKEND
from tallow.kernels.table import kernel


def float32_row(x: Array, block: DecodeBlock, position: int) -> bool:
    """A float32 array, and a block of contiguous, aligned NumPy arrays, with writable caches."""
    return x.dtype == FLOAT32 and isinstance(position, int) and (block.packed is not None or block_can_be_packed(block))


@kernel("decode_block", BACKEND, accepts=float32_row)
def decode_block(x: Array, block: DecodeBlock, position: int) -> Array:
    """Compute tallow.fused.decode_block.decode_block, as a stack of one block."""
    check_call(x, block, position)
    if block.packed is None:
        block.packed = PackedStack(DecodeStack([block], None, block.eps))
    return computed(x, block.packed, position)  # type: ignore[arg-type]

"""state_block, as a stack of one block; see tallow.kernels.blocks.state_block and src/blocks/state_mixer.h."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels.bindings.decode_block import by_stack, float32_rows
from tallow.kernels.blocks.state_block import StateBlock
from tallow.kernels.library import BACKEND
from tallow.kernels.table import kernel


@kernel("state_block", BACKEND, accepts=float32_rows)
def state_block(x: Array, block: StateBlock, places: int | Array) -> Array:
    """Compute tallow.kernels.blocks.state_block.state_block."""
    return by_stack(x, block, places)

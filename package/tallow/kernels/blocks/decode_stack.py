"""Rows through all blocks of `tallow.kernels.blocks.decode_block` and `state_block`, and the last norm, in one call.

A row is the hidden state of one position of one text: the new tokens of several texts, or some tokens of one prompt.
With compiled kernels a token of a small model takes one call from Python to C.

Letters: M rows, D width.

    stack = DecodeStack(blocks, norm, eps=1e-5)                       # once
    hidden = kernels.run("decode_blocks", x, stack, position)         # for every token
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels.blocks.decode_block import Block, DecodeBlock, outside
from tallow.kernels.table import ARRAY, kernel, run


@dataclass(slots=True, eq=False)
class DecodeStack:
    """Blocks that follow each other, with caches of one size, and the RMS norm after them, or None.

    Shapes:  norm (D,)
    Dtypes:  norm float32
    Raises:  ShapeError, DtypeError: blocks or the norm do not fit each other
    """

    blocks: Sequence[Block]
    norm: Array | None
    eps: float
    width: int = field(init=False)
    texts: int = field(init=False)
    positions: int = field(init=False)
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the stack

    def __post_init__(self) -> None:
        sizes = {(block.width, block.texts) for block in self.blocks}
        positions = {block.positions for block in self.blocks if isinstance(block, DecodeBlock)}
        if len(sizes) != 1 or len(positions) > 1:
            found = sorted((block.width, block.texts, block.positions) for block in self.blocks)
            raise ShapeError(f"DecodeStack: blocks of (width, texts, positions) {found}; expected one of each")
        ((self.width, self.texts),) = sizes
        self.positions = min(block.positions for block in self.blocks)  # states have room for more than caches
        if self.norm is not None and self.norm.shape != (self.width,):
            raise ShapeError(f"DecodeStack: the norm is {self.norm.shape}; expected {(self.width,)}")
        if self.norm is not None and self.norm.dtype != np.float32:
            raise DtypeError(f"DecodeStack: the norm is {self.norm.dtype}, not float32")


def check_rows(x: Array, stack: DecodeStack, places: int | Array) -> None:
    """Raise unless `places` has a place in the cache for each row of `x`; see `decode_blocks`."""
    if isinstance(places, int):
        if x.size != stack.width:
            raise ShapeError(f"decode_blocks: x is {x.shape}; expected one row of width {stack.width}")
        if not 0 <= places < stack.positions:
            raise outside(places, stack.positions)
        return
    if x.ndim != 2 or not len(x) or x.shape[1] != stack.width or places.shape != (len(x), 3):
        raise ShapeError(
            f"decode_blocks: x is {x.shape} and places {places.shape}; expected (M, {stack.width}) and (M, 3)"
        )
    if not isinstance(places, np.ndarray):
        return  # in a device's memory: reading them would wait for the device
    text, position, start = places.T
    if (position >= stack.positions).any():
        raise outside(int(position.max()), stack.positions)
    if (places < 0).any() or (text >= stack.texts).any() or (start > position).any():
        raise ArgumentError(
            f"decode_blocks: places {places.tolist()} are not texts below {stack.texts}, positions, and starts up to "
            "those positions"
        )


@kernel("decode_blocks", ARRAY)
def decode_blocks(x: Array, stack: DecodeStack, places: int | Array) -> Array:
    """Return the normalized output of the last block, and write keys and values of the rows to the caches.

    Args:
        places: for each row its text, its position and the first position that it sees; rows of one text are in the
            order of their positions. CUDA kernels read them when they run. Or the position of one row of the first
            text.

    Shapes:  x (M, D) -> the same; places (M, 3)
    Dtypes:  x float32, places signed integers
    Raises:  ShapeError; ArgumentError for places outside the caches
    """
    check_rows(x, stack, places)
    for block in stack.blocks:
        x = run(block.kernel, x, block, places)
    return x if stack.norm is None else run("rms_norm", x, stack.norm, stack.eps)

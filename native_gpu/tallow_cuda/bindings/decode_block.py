"""decode_block: a token of each text through one block of a language model in about seven launches.

It takes as long as reading the weights once, if nothing waits for launches; see tallow.kernels.blocks.decode_block and
tallow.cuda.graphs.
"""

from __future__ import annotations

from typing import cast

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow.kernels.blocks.decode_block import DecodeBlock, check_call
from tallow.kernels.quantized.int8_rows import INT8
from tallow_cuda.bindings.attention import CHUNK, MOST, attend_to_cache
from tallow_cuda.launching import FLOAT32, WARP, contiguous, launch, threads_for
from tallow_cuda.linear_rows import MOST_ROWS, can_be_read, linear_rows
from tallow_cuda.sources import element, load


def block_on_card(x: Array, block: DecodeBlock, places: int | Array) -> bool:
    """float32 x of up to eight rows; contiguous arrays, heads of a multiple of 16 bytes, at most 512; gate, up alike.

    Heads have no gates, and all of their elements are rotated.
    `places` are a number, or int64 in the device's memory. Quantized matrices may take fewer rows.
    """
    if block.packed is None:
        block.packed = next((rows for rows in range(MOST_ROWS, 0, -1) if _can_be_read(block, rows)), 0)
    on_card = isinstance(places, int) or type(places) is type(x)
    return x.dtype == FLOAT32 and on_card and x.size <= cast("int", block.packed) * block.width


def _can_be_read(block: DecodeBlock, rows: int) -> bool:
    if block.key_cache.dtype == INT8 or block.gated or block.rotated != block.head_width:
        return False
    row = block.head_width * block.key_cache.dtype.itemsize
    vectors = (block.attention_norm, block.mlp_norm, block.cos, block.sin, block.key_cache, block.value_cache)
    additions = [array for array in block.additions if array is not None]
    alone = (block.query, block.key, block.value, block.output, block.down)
    groups = (*((matrix,) for matrix in alone), (block.gate, block.up))
    return (
        row % CHUNK == 0
        and row <= WARP * CHUNK
        and block.heads <= MOST
        and all(array.flags.c_contiguous for array in (*vectors, *additions))
        and all(can_be_read(*matrices, rows=rows) for matrices in groups)
    )


@kernel("decode_block", "cuda", accepts=block_on_card)
def decode_block(x: Array, block: DecodeBlock, places: int | Array) -> Array:
    """Compute tallow.kernels.blocks.decode_block.decode_block.

    Places in device memory are read when the kernels run; if a position is outside the cache, nothing is written.
    """
    check_call(x, block, places)
    tokens = x.reshape(-1, block.width)
    projected = _projected(tokens, block)
    _rotate_and_store(projected, block, places)
    query = projected[:, : block.heads * block.head_width].reshape(len(tokens), block.heads, 1, -1)
    scale = float(block.head_width**-0.5)
    if isinstance(places, int):
        keys, values = (cache[:1, :, : places + 1] for cache in (block.key_cache, block.value_cache))
        mixed = attend_to_cache(query, keys, values, scale)
    else:
        mixed = attend_to_cache(query, block.key_cache, block.value_cache, scale, places)
    h = linear_rows(mixed.reshape(len(tokens), -1), block.output, residual=tokens)
    gated = linear_rows(h, block.gate, block.up, norm=(block.mlp_norm, block.eps), gated=True)
    return linear_rows(gated, block.down, residual=h).reshape(x.shape)


def _projected(tokens: Array, block: DecodeBlock) -> Array:
    """Return query, key and value side by side, at once if their matrices are alike."""
    matrices, norm = (block.query, block.key, block.value), (block.attention_norm, block.eps)
    if can_be_read(*matrices, rows=len(tokens)):
        return linear_rows(tokens, *matrices, norm=norm)
    parts = [linear_rows(tokens, matrix, norm=norm) for matrix in matrices]
    return array_module(tokens).concatenate(parts, axis=-1)


def _rotate_and_store(projected: Array, block: DecodeBlock, places: int | Array) -> None:
    known = isinstance(places, int)
    launch(
        load("decode_block.cu", "rotate_and_store", C=element(block.key_cache)),
        (block.heads + 2 * block.kv_heads, len(projected)),
        (threads_for(block.head_width // 2, 1),),
        projected,
        *block.additions,
        block.cos,
        block.sin,
        block.key_cache,
        block.value_cache,
        None if known else contiguous(places),
        places if known else 0,
        block.heads,
        block.kv_heads,
        block.head_width,
        block.positions,
        int(block.interleaved),
        float(block.eps),
        waits=True,
    )

"""decode_block: one token through one block of a language model in about seven launches.

It takes as long as reading the weights once, if nothing waits for launches; see tallow.fused.decode_block and
tallow.cuda.graphs.
"""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.fused.decode_block import DecodeBlock, check_call
from tallow.kernels import kernel
from tallow.kernels.int8_rows import Int8Rows
from tallow_cuda.bindings.attention import CHUNK, MOST, attend_to_cache
from tallow_cuda.launching import FLOAT32, WARP, launch, threads_for
from tallow_cuda.linear_rows import can_be_read, linear_rows
from tallow_cuda.sources import element, load


def block_on_card(x: Array, block: DecodeBlock, position: int | Array) -> bool:
    """float32 x; contiguous arrays, heads of a multiple of 16 bytes, at most 512; gate and up alike."""
    if block.packed is None:
        block.packed = _can_be_read(block)
    return x.dtype == FLOAT32 and block.packed is True


def _can_be_read(block: DecodeBlock) -> bool:
    if isinstance(block.key_cache, Int8Rows) or isinstance(block.value_cache, Int8Rows):
        return False
    row = block.head_width * block.key_cache.itemsize
    vectors = (block.attention_norm, block.mlp_norm, block.cos, block.sin, block.key_cache, block.value_cache)
    additions = [array for array in block.additions if array is not None]
    alone = (block.query, block.key, block.value, block.output, block.down)
    groups = (*((matrix,) for matrix in alone), (block.gate, block.up))
    return (
        row % CHUNK == 0
        and row <= WARP * CHUNK
        and block.heads <= MOST
        and all(array.flags.c_contiguous for array in (*vectors, *additions))
        and all(can_be_read(*matrices) for matrices in groups)
    )


@kernel("decode_block", "cuda", accepts=block_on_card)
def decode_block(x: Array, block: DecodeBlock, position: int | Array) -> Array:
    """Compute tallow.fused.decode_block.decode_block.

    A position in device memory is read when the kernel runs; if it is outside the cache, nothing is written.
    """
    check_call(x, block, position)
    token = x.reshape(1, -1)
    projected = _projected(token, block)
    _rotate_and_store(projected, block, position)
    query = projected[:, : block.heads * block.head_width].reshape(1, block.heads, 1, -1)
    scale = float(block.head_width**-0.5)
    if isinstance(position, int):
        keys, values = (cache[:, :, : position + 1] for cache in (block.key_cache, block.value_cache))
        mixed = attend_to_cache(query, keys, values, scale)
    else:
        mixed = attend_to_cache(query, block.key_cache, block.value_cache, scale, position)
    h = linear_rows(mixed.reshape(1, -1), block.output, residual=token)
    gated = linear_rows(h, block.gate, block.up, norm=(block.mlp_norm, block.eps), gated=True)
    return linear_rows(gated, block.down, residual=h).reshape(x.shape)


def _projected(token: Array, block: DecodeBlock) -> Array:
    """Return query, key and value side by side, at once if their matrices are alike."""
    matrices, norm = (block.query, block.key, block.value), (block.attention_norm, block.eps)
    if can_be_read(*matrices):
        return linear_rows(token, *matrices, norm=norm)
    parts = [linear_rows(token, matrix, norm=norm) for matrix in matrices]
    return array_module(token).concatenate(parts, axis=-1)


def _rotate_and_store(projected: Array, block: DecodeBlock, position: int | Array) -> None:
    known = isinstance(position, int)
    launch(
        load("decode_block.cu", "rotate_and_store", C=element(block.key_cache)),
        (block.heads + 2 * block.kv_heads,),
        (threads_for(block.head_width // 2, 1),),
        projected,
        *block.additions,
        block.cos,
        block.sin,
        block.key_cache,
        block.value_cache,
        None if known else position,
        position if known else 0,
        block.heads,
        block.kv_heads,
        block.head_width,
        block.positions,
        int(block.interleaved),
        float(block.eps),
        waits=True,
    )

"""greedy_tokens, sampled_tokens: the next tokens from logits on the device; see src/sampling.cu."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import contiguous, is_float, launch, threads_for
from tallow_cuda.sources import element, load

GROUP, CHUNK, ROWS, THREADS = 256, 2048, 64, 256  # as in the source
CANDIDATE, SUMS, BOUNDS = 16, 24, 8  # bytes
UINT8 = np.dtype(np.uint8)
UNIFORMS = np.dtype([("of_row", np.float64, ROWS)])


def float_rows(logits_BV: Array, *_: object) -> bool:
    """Two dims of float32, float16 or bfloat16; from 1 to 2^31 tokens."""
    return logits_BV.ndim == 2 and 0 < logits_BV.shape[1] < 2**31 and is_float(logits_BV)


@kernel("greedy_tokens", "cuda", accepts=float_rows)
def greedy_tokens(logits_BV: Array) -> Array:
    """Compute tallow.generation.sampling.greedy_tokens in one pass."""
    x = contiguous(logits_BV)
    rows, width = x.shape
    tokens = array_module(x).empty(rows, np.int64)
    if rows:
        launch(load("sampling.cu", "greedy", X=element(x)), (rows,), (threads_for(width, 1),), x, tokens, width)
    return tokens


@kernel("sampled_tokens", "cuda", accepts=float_rows)
def sampled_tokens(
    logits_BV: Array, uniforms: Sequence[float], temperature: float, top_k: int | None, top_p: float, min_p: float
) -> Array:
    """Compute tallow.generation.sampling.sampled_tokens in four launches for 64 rows."""
    x = contiguous(logits_BV)
    tokens = array_module(x).empty(len(x), np.int64)
    for start in range(0, len(x), ROWS):
        part = slice(start, start + ROWS)
        _sample(x[part], tokens[part], uniforms[part], temperature, top_k, top_p, min_p)
    return tokens


def _sample(
    x: Array,
    tokens: Array,
    uniforms: Sequence[float],
    temperature: float,
    top_k: int | None,
    top_p: float,
    min_p: float,
) -> None:
    xp = array_module(x)
    rows, width = x.shape
    groups, chunks = -(-width // GROUP), -(-width // CHUNK)
    keys = xp.empty((rows, groups), np.uint32)
    bounds = xp.empty(rows * BOUNDS, UINT8)
    slots = xp.empty(rows * chunks * CHUNK * CANDIDATE, UINT8)
    sums, of_chunk = xp.empty(rows * chunks * SUMS, UINT8), xp.empty(rows * chunks, np.float64)
    k = 0 if top_k is None or top_k >= width else top_k
    # Tokens lighter than this sum to less than 1 - p of the total, because the likeliest weighs 1. Without top_p,
    # tokens lighter than min_p are dropped at once; with it, they still count in the sums.
    floor = min_p if top_p == 1 else 0.0 if k else (1 - top_p) / width
    x_is = element(x)
    launch(load("sampling.cu", "group_keys", X=x_is), (chunks, rows), (THREADS,), x, keys, width)
    launch(
        load("sampling.cu", "find_bound", X=x_is),
        (rows,),
        (THREADS,),
        keys,
        slots,
        bounds,
        groups,
        k,
    )
    launch(
        load("sampling.cu", "collect", X=x_is), (chunks, rows), (THREADS,), x, bounds, slots, sums, width,
        np.float64(temperature), np.float64(floor),
    )  # fmt: skip
    scratch = xp.empty(slots.size if k or top_p < 1 else 0, UINT8)
    argument = np.zeros((), UNIFORMS)
    argument["of_row"][:rows] = uniforms
    launch(
        load("sampling.cu", "choose", X=x_is), (rows,), (THREADS,), bounds, slots, sums, scratch, of_chunk, tokens,
        chunks, k, np.float64(top_p), np.float64(min_p), argument,
    )  # fmt: skip

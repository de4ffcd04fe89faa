"""com.microsoft: attention of onnxruntime's optimizers and of its generator of language models.

Letters: B batch, T queries, S keys, P past keys, H query heads, G key and value heads, K head size
Source:  https://github.com/microsoft/onnxruntime, docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.errors import UnsupportedError
from tallow.onnx.operators.attention import by_scores, merge_heads, rotary_embedding, split_heads
from tallow.onnx.operators.registry import operator as any_operator

operator = partial(any_operator, domain="com.microsoft")
LOWEST = -10000.0  # is added to the scores of keys that a mask leaves out


def _key_mask(mask: Tensor | None, keys: int, lowest: float) -> Tensor | None:
    """Return what is added to the scores, for a mask of keys: lengths (B,), (B, S), (B, T, S) or (B, 1, T, S)."""
    if mask is None:
        return None
    if mask.dim() == 1:
        mask = tl.arange(keys) < mask.unsqueeze(-1)
    mask = mask.reshape(mask.shape[0], *(1,) * (4 - mask.dim()), *mask.shape[1:])
    zero = tl.zeros((), dtype=tl.float32)
    return tl.where(mask != 0, zero, tl.full((), lowest))


def _causal(queries: int, keys: int) -> Tensor:
    """Return which keys each query attends to; the last query attends to all."""
    return tl.arange(keys) <= tl.arange(queries).unsqueeze(-1) + (keys - queries)


def _attended(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, causal: int, scale: float | None
) -> Tensor:
    """Return attention in the layout (B, T, H · K)."""
    if bias is None and (not causal or query.shape[2] == key.shape[2]):
        y = F.scaled_dot_product_attention(query, key, value, is_causal=bool(causal), scale=scale)
        return merge_heads(y)
    if causal:
        allowed = _causal(query.shape[2], key.shape[2])
        bias = allowed if bias is None else tl.where(allowed, bias, tl.full((), -tl.inf, dtype=bias.dtype))
    if bias is not None and bias.dtype is not tl.bool:
        bias = bias.to(query.dtype)
    return merge_heads(F.scaled_dot_product_attention(query, key, value, bias, scale=scale))


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b


@operator("Attention", since=1, whole=True)
def attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask_index: Tensor | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = LOWEST,
    num_heads: int,
    qkv_hidden_sizes: Sequence[int] | None = None,
    scale: float | None = None,
    unidirectional: int = 0,
    outputs: int = 1,
) -> Any:
    """Self-attention with the projection of queries, keys and values.

    Shapes:  x (B, T, D), weights (D, 3 · H · K), past (2, B, H, P, K) -> (B, T, H · K), (2, B, H, P + T, K)
    Raises:  UnsupportedError with `do_rotary`
    """
    if do_rotary:
        raise UnsupportedError("com.microsoft.Attention: do_rotary", hint="export with GroupQueryAttention")
    packed = tl.matmul(x, weights)
    packed = packed if bias is None else packed + bias
    widths = list(qkv_hidden_sizes) if qkv_hidden_sizes else [packed.shape[-1] // 3] * 3
    query, key, value = (split_heads(part, num_heads) for part in tl.split(packed, widths, -1))
    if past is not None:
        key, value = tl.cat([past[0], key], 2), tl.cat([past[1], value], 2)
    mask = _sum(_key_mask(mask_index, key.shape[2], mask_filter_value), attention_bias)
    y = _attended(query, key, value, mask, unidirectional, scale or None)
    return (y, tl.stack([key, value])) if outputs > 1 else y


@operator("MultiHeadAttention", since=1, whole=True)
def multi_head_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    mask_filter_value: float = LOWEST,
    num_heads: int,
    scale: float | None = None,
    unidirectional: int = 0,
    outputs: int = 1,
) -> Any:
    """Attention of projected queries, keys and values.

    Shapes:  query (B, T, H · K), key and value (B, S, H · K) or as past ones (B, H, S, K); or query (B, T, H, 3, K)
             and key (B, S, H, 2, K) with the others in them -> (B, T, H · K), (B, H, P + S, K) twice
    """
    if query.dim() == 5:
        query, key, value = (part.flatten(2) for part in query.unbind(3))
    elif key is not None and key.dim() == 5:
        key, value = (part.flatten(2) for part in key.unbind(3))
    if key is None or value is None:
        raise UnsupportedError("MultiHeadAttention without key and value", hint="pass them, or a packed query")
    parts = [query, key, value]
    if bias is not None:
        widths = [each.shape[-1] if each.dim() == 3 else each.shape[1] * each.shape[3] for each in parts]
        biases = tl.split(bias, widths)
        parts = [each + b if each.dim() == 3 else each for each, b in zip(parts, biases, strict=True)]
    q, k, v = (split_heads(each, num_heads) if each.dim() == 3 else each for each in parts)
    if past_key is not None and past_value is not None:
        k, v = tl.cat([past_key, k], 2), tl.cat([past_value, v], 2)
    mask = _sum(_key_mask(key_padding_mask, k.shape[2], mask_filter_value), attention_bias)
    y = _attended(q, k, v, mask, unidirectional, scale or None)
    return (y, k, v)[:outputs] if outputs > 1 else y


@operator("GroupQueryAttention", since=1, whole=True)
def group_query_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    seqlens_k: Tensor,
    total_sequence_length: Tensor,
    cos_cache: Tensor | None = None,
    sin_cache: Tensor | None = None,
    position_ids: Tensor | None = None,
    attention_bias: Tensor | None = None,
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: float | None = None,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    outputs: int = 3,
) -> Any:
    """Causal attention of a language model, with its cache and rotary embedding.

    Args:
        seqlens_k: the number of keys of each sequence, minus one; sequences are padded at the end.
        local_window_size: each query attends to as many keys at most, itself among them.

    Shapes:  query (B, T, H · K), key and value (B, T, G · K); or query (B, T, (H + 2 · G) · K); past (B, G, P, K)
             -> (B, T, H · K), (B, G, S, K) twice, S = max(P, total_sequence_length)
    """
    if smooth_softmax > 0:
        raise UnsupportedError("GroupQueryAttention: smooth_softmax", hint="export without it")
    if key is None or value is None:
        size = query.shape[-1] // (num_heads + 2 * kv_num_heads)
        query, key, value = tl.split(query, [num_heads * size, kv_num_heads * size, kv_num_heads * size], -1)
    steps, total = query.shape[1], int(total_sequence_length.item())
    q, k, v = split_heads(query, num_heads), split_heads(key, kv_num_heads), split_heads(value, kv_num_heads)
    # The first of the new positions: a first text begins at 0, also where it is padded.
    ends = seqlens_k.reshape(-1).to(tl.int64) + 1
    start = tl.zeros_like(ends) if steps == total else ends - steps
    positions = start.unsqueeze(-1) + tl.arange(steps)  # (B, T)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise UnsupportedError("GroupQueryAttention: do_rotary without tables", hint="pass cos_cache, sin_cache")
        places = positions if position_ids is None else position_ids
        places = tl.clamp(places, 0, cos_cache.shape[0] - 1)
        width = 2 * cos_cache.shape[1]
        turned = {"interleaved": rotary_interleaved, "rotary_embedding_dim": 0 if width == q.shape[-1] else width}
        q = rotary_embedding(q, cos_cache, sin_cache, places, **turned)
        k = rotary_embedding(k, cos_cache, sin_cache, places, **turned)
    k, v = _cached(past_key, k, positions, total), _cached(past_value, v, positions, total)
    keys = tl.arange(k.shape[2])
    distance = positions.unsqueeze(1).unsqueeze(-1) - keys  # (B, 1, T, S)
    allowed = distance >= 0
    if local_window_size > 0:
        allowed = allowed & (distance < local_window_size)
    mask = allowed
    if attention_bias is not None:
        mask = tl.where(allowed, attention_bias, tl.full((), -tl.inf, dtype=attention_bias.dtype))
    if softcap:
        y, _ = by_scores(q, k, v, mask, scale=scale or None, softcap=softcap)
    else:
        y = F.scaled_dot_product_attention(q, k, v, mask, scale=scale or None, enable_gqa=True)
    return (merge_heads(y), k, v)[:outputs] if outputs > 1 else merge_heads(y)


def _cached(past: Tensor | None, new: Tensor, positions: Tensor, total: int) -> Tensor:
    """Write keys or values at their positions behind those of the past."""
    if past is None or not past.shape[2]:
        return new
    if past.shape[2] + new.shape[2] == total and bool((positions[:, 0] == past.shape[2]).all()):
        return tl.cat([past, new], 2)
    room = max(past.shape[2], total)
    whole = F.pad(past, (0, 0, 0, room - past.shape[2]))
    index = positions.reshape(positions.shape[0], 1, -1, 1).expand(new.shape)
    return tl.scatter(whole, 2, index, new)


@operator("RotaryEmbedding", since=1, whole=True)
def rotary_embedding_at(
    x: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """Rotate the heads by the angles of their positions; one position is that of the first step.

    Shapes:  x (B, T, H · K) or (B, H, T, K), position_ids (1,) or (B, T)
    Raises:  UnsupportedError for packed batches and scales
    """
    if is_packed_batching or scale != 1:
        raise UnsupportedError("com.microsoft.RotaryEmbedding: packed batches and scales", hint="export without them")
    steps = x.shape[1] if x.dim() == 3 else x.shape[2]
    if position_ids.numel() == 1:
        position_ids = (position_ids.reshape(1, 1) + tl.arange(steps)).expand(x.shape[0], steps)
    size = rotary_embedding_dim or 2 * cos_cache.shape[1]
    heads = num_heads or (x.shape[-1] // size if x.dim() == 3 else 0)
    return rotary_embedding(
        x,
        cos_cache,
        sin_cache,
        position_ids,
        interleaved=interleaved,
        num_heads=heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )

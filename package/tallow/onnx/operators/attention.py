"""ONNX attention, rotary embeddings and linear attention.

Letters: B batch, T queries, S keys, H query heads, G key and value heads, K head size
Source:  https://onnx.ai/onnx/operators, opset 27
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.element_types import dtype_of
from tallow.onnx.operators.registry import operator

RAW, CAPPED, BIASED, PROBABILITIES = range(4)  # what `qk_matmul_output_mode` asks for


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, T, H · K) -> (B, H, T, K)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, T, K) -> (B, T, H · K)"""
    return x.transpose(1, 2).flatten(2)


def _allowed(queries: int, keys: int, offset: Any, is_causal: int, left: int, right: int) -> Tensor | None:
    """Return which keys each query attends to: None for all; (T, S), or (B, 1, T, S) if `offset` is a tensor (B,).

    Args:    offset: the position of the first query among the keys
    """
    if not is_causal and left < 0 and right < 0:
        return None
    start = offset.reshape(-1, 1, 1, 1) if isinstance(offset, Tensor) else offset
    distance = tl.arange(queries).reshape(-1, 1) + start - tl.arange(keys)  # how far before its query a key is
    allowed = distance >= 0 if is_causal else distance == distance
    if left >= 0:
        allowed = allowed & (distance <= left)
    return allowed & (-distance <= right) if right >= 0 else allowed


def _combined(mask: Tensor | None, allowed: Tensor | None, keys: int) -> Tensor | None:
    """Return a mask of what both allow; a float one adds to the scores. Keys past its end are not attended."""
    if mask is not None and mask.shape[-1] < keys:
        lowest = False if mask.dtype == tl.bool else -tl.inf
        mask = F.pad(mask, (0, keys - mask.shape[-1]), value=lowest)
    if mask is None or allowed is None:
        return allowed if mask is None else mask
    if mask.dtype == tl.bool:
        return mask & allowed
    return tl.where(allowed, mask, tl.full((), -tl.inf, dtype=mask.dtype))


def by_scores(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    scale: float | None,
    softcap: float = 0.0,
    precision: tl.dtype | None = None,
    output_mode: int = RAW,
) -> tuple[Tensor, Tensor]:
    """Return attention and its scores, where both are asked for or the scores are capped."""
    heads = query.shape[1] // key.shape[1]
    if heads > 1:
        key, value = tl.repeat_interleave(key, heads, 1), tl.repeat_interleave(value, heads, 1)
    root = (query.shape[-1] ** -0.5 if scale is None else scale) ** 0.5  # on both sides: halves do not overflow
    shown = scores = tl.matmul(query * root, (key * root).transpose(-1, -2))
    if softcap > 0:
        scores = softcap * tl.tanh(scores / softcap)
    if output_mode == CAPPED:
        shown = scores
    if mask is not None:
        minus = tl.full((), -tl.inf, dtype=scores.dtype)
        scores = tl.where(mask, scores, minus) if mask.dtype == tl.bool else scores + mask
    if output_mode == BIASED:
        shown = scores
    probabilities = tl.softmax(scores if precision is None else scores.to(precision), -1).to(query.dtype)
    none = tl.amax(scores, -1, keepdim=True) == -tl.inf  # queries without keys
    probabilities = tl.where(none, tl.zeros_like(probabilities), probabilities)
    return tl.matmul(probabilities, value), probabilities if output_mode == PROBABILITIES else shown


@operator("Attention", since=23)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    outputs: int = 1,
) -> Any:
    """Scaled dot-product attention.

    Shapes:  query (B, H, T, K) or (B, T, H · K), key and value with G heads and S positions, past (B, G, P, K)
             -> (B, H, T, K) or (B, T, H · K); the present keys and values; the scores (B, H, T, P + S)
    """
    packed = q_num_heads is not None and query.dim() == 3
    if q_num_heads is not None and packed:
        groups = kv_num_heads or q_num_heads
        query, key, value = split_heads(query, q_num_heads), split_heads(key, groups), split_heads(value, groups)
    offset: Any = 0
    if past_key is not None and past_value is not None:
        offset = past_key.shape[2]
        key, value = tl.cat([past_key, key], 2), tl.cat([past_value, value], 2)
    fused = outputs < 4 and not softcap and softmax_precision in (None, 1)
    windowed = left_window_size >= 0 or right_window_size >= 0
    if fused and attn_mask is None and past_key is None and nonpad_kv_seqlen is None and not windowed:
        y = F.scaled_dot_product_attention(query, key, value, is_causal=bool(is_causal), scale=scale, enable_gqa=True)
        y = merge_heads(y) if packed else y
        return (y, key, value)[:outputs] if outputs > 1 else y
    queries, keys = query.shape[2], key.shape[2]
    if nonpad_kv_seqlen is not None and past_key is None:
        offset = nonpad_kv_seqlen - queries
    mask = _combined(attn_mask, _allowed(queries, keys, offset, is_causal, left_window_size, right_window_size), keys)
    if nonpad_kv_seqlen is not None:
        mask = _combined(mask, tl.arange(keys) < nonpad_kv_seqlen.reshape(-1, 1, 1, 1), keys)
    if fused:
        y = F.scaled_dot_product_attention(query, key, value, mask, scale=scale, enable_gqa=True)
        y = merge_heads(y) if packed else y
        return (y, key, value)[:outputs] if outputs > 1 else y
    y, scores = by_scores(
        query,
        key,
        value,
        mask,
        scale=scale,
        softcap=softcap,
        precision=None if softmax_precision is None else dtype_of(softmax_precision),
        output_mode=qk_matmul_output_mode,
    )
    y = merge_heads(y) if packed else y
    return (y, key, value, scores)[:outputs] if outputs > 1 else y


@operator("FlexAttention", since=1, domain="ai.onnx.preview")
def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    prob_mod: Callable[[Tensor], Tensor] | None = None,
    scale: float | None = None,
    score_mod: Callable[[Tensor], Tensor] | None = None,
    softmax_precision: int | None = None,
) -> Tensor:
    """Attention whose scores and probabilities pass through graphs."""
    heads = query.shape[1] // key.shape[1]
    key, value = tl.repeat_interleave(key, heads, 1), tl.repeat_interleave(value, heads, 1)
    scores = tl.matmul(query, key.transpose(-1, -2)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores)
    precision = query.dtype if softmax_precision is None else dtype_of(softmax_precision)
    probabilities = tl.softmax(scores.to(precision), -1).to(query.dtype)
    if prob_mod is not None:
        probabilities = prob_mod(probabilities)
    return tl.matmul(probabilities, value)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: int) -> Tensor:
    """Turn pairs of elements: of the two halves of the last dim, or neighbours.

    Shapes:  x (B, H, T, K), cos and sin (B, 1, T, K / 2)
    """
    if interleaved:
        pairs = x.unflatten(-1, (-1, 2))
        first, second = pairs[..., 0], pairs[..., 1]
        return tl.stack([first * cos - second * sin, first * sin + second * cos], -1).flatten(-2)
    first, second = x.chunk(2, -1)
    return tl.cat([first * cos - second * sin, first * sin + second * cos], -1)


@operator("RotaryEmbedding", since=23)
def rotary_embedding(
    x: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    """Rotate the first `rotary_embedding_dim` elements of each head by the angles of its position.

    Shapes:  x (B, H, T, K) or with `num_heads` (B, T, H · K); caches (B, T, R / 2), or with `position_ids` (B, T)
             (positions, R / 2)
    """
    packed = num_heads > 0 and x.dim() == 3
    if packed:
        x = split_heads(x, num_heads)
    cos = (cos_cache if position_ids is None else cos_cache[position_ids]).unsqueeze(1)
    sin = (sin_cache if position_ids is None else sin_cache[position_ids]).unsqueeze(1)
    if rotary_embedding_dim:
        turned = rotate(x[..., :rotary_embedding_dim], cos, sin, interleaved)
        y = tl.cat([turned, x[..., rotary_embedding_dim:]], -1)
    else:
        y = rotate(x, cos, sin, interleaved)
    return merge_heads(y) if packed else y


@operator("LinearAttention", since=27, whole=True)
def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Tensor, Tensor]:
    """Attention whose state is a matrix for each head, updated with every key.

    Shapes:  query (B, T, H · K), key (B, T, G · K), value (B, T, G · V), past_state (B, G, K, V)
             -> (B, T, H · V), (B, G, K, V)
    Raises:  ArgumentError for an unknown rule
    Source:  Yang et al. 2024, arXiv:2412.06464
    """
    if update_rule not in ("linear", "gated", "delta", "gated_delta"):
        raise ArgumentError(
            f"LinearAttention: update_rule={update_rule!r}", hint="use linear, gated, delta, gated_delta"
        )
    q, k, v = split_heads(query, q_num_heads), split_heads(key, kv_num_heads), split_heads(value, kv_num_heads)
    shape = (k.shape[0], kv_num_heads, k.shape[-1], v.shape[-1])
    state = k.new_zeros(shape, dtype=tl.float32) if past_state is None else past_state.to(tl.float32)
    whole = (*key.shape[:2], kv_num_heads)  # of gates and rates that all heads share
    gates = rates = None
    if decay is not None and "gated" in update_rule:
        gates = split_heads(decay.expand(whole) if decay.shape[-1] == 1 else decay, kv_num_heads).exp()
    if beta is not None and "delta" in update_rule:
        rates = split_heads(beta.expand(whole) if beta.shape[-1] == 1 else beta, kv_num_heads)
    groups = q_num_heads // kv_num_heads
    rows = []
    for t in range(query.shape[1]):
        k_t, v_t = k[:, :, t].to(tl.float32), v[:, :, t].to(tl.float32)  # (B, G, K), (B, G, V)
        if gates is not None:
            state = state * gates[:, :, t].to(tl.float32).unsqueeze(-1)
        if "delta" in update_rule:
            v_t = v_t - tl.matmul(k_t.unsqueeze(-2), state).squeeze(-2)
            if rates is not None:
                v_t = v_t * rates[:, :, t].to(tl.float32)
        state = state + k_t.unsqueeze(-1) * v_t.unsqueeze(-2)
        q_t = q[:, :, t].to(tl.float32).unflatten(1, (kv_num_heads, groups))  # (B, G, H / G, K)
        rows.append(tl.matmul(q_t, state).flatten(1, 2))
    factor = scale or q.shape[-1] ** -0.5
    y = merge_heads(tl.stack(rows, 2) * factor)
    return y.to(query.dtype), state.to(query.dtype if past_state is None else past_state.dtype)

"""Scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tallow import dtypes
from tallow.core.creation import ones
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import DtypeError
from tallow.functions.dropout import check_probability, draw_keep
from tallow.ops.attention import scaled_dot_product_attention as attention_op
from tallow.ops.attention import scores_shape

_weights: ContextVar[list[Tensor] | None] = ContextVar("attention weights", default=None)


@contextmanager
def attention_weights() -> Iterator[list[Tensor]]:
    """Record the weights (..., H, T, S) of each attention that is computed in the block, in the order of the calls."""
    recorded: list[Tensor] = []
    token = _weights.set(recorded)
    try:
        yield recorded
    finally:
        _weights.reset(token)


def record_attention(scores: Tensor, allowed: Tensor | None) -> None:
    """Record the weights of scores (..., H, T, S) in a block of `attention_weights`.

    Args:    allowed: True where a query may attend to a key; None means everywhere
    """
    if _weights.get() is not None:
        if allowed is not None:
            scores = scores.masked_fill(~allowed, dtypes.finfo(scores.dtype).min)
        record_weights(scores.softmax(-1))


def record_weights(weights: Tensor) -> None:
    """Record weights (..., H, T, S) in a block of `attention_weights`."""
    if (recorded := _weights.get()) is not None:
        recorded.append(weights)


def _record(
    query: Tensor,
    key: Tensor,
    bias: Tensor | None,
    allowed: Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> None:
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.mT * (max(query.shape[-1], 1) ** -0.5 if scale is None else scale)
    if is_causal:
        allowed = query.new_ones(query.shape[-2], key.shape[-2], dtype=dtypes.bool).tril()
    if bias is not None:  # finite, so that a query that sees no key has weights, as in transformers
        scores = scores + bias.clamp(min=dtypes.finfo(scores.dtype).min)
    record_attention(scores, allowed)


@public("F")
@recorded_whole
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute softmax(q kᵀ · scale + mask) v.

    Args:
        attn_mask: booleans, True where a query may attend to a key; or floats to add to the scores.
        dropout_p: probability of dropping a weight, in training and evaluation.
        is_causal: query i attends to keys 0 to i, counted from the first key, as far as attn_mask lets it.
        scale: 1 / √K if None.
        enable_gqa: allow G to be a divisor of H; consecutive query heads then share a key/value head.

    Shapes:  query (..., H, T, K), key (..., G, S, K), value (..., G, S, E) -> (..., H, T, E); attn_mask broadcasts to
             (..., H, T, S); the output of a query whose keys are all masked is zero
    Source:  Vaswani et al. 2017, arXiv:1706.03762, eq. 1
    """
    if dropout_p != 0:
        check_probability("scaled_dot_product_attention", dropout_p)
    bias = allowed = keep = None
    if attn_mask is not None:
        if not attn_mask.is_floating_point() and attn_mask.array.dtype != bool:
            raise DtypeError(f"scaled_dot_product_attention: attn_mask must be bool or float, not {attn_mask.dtype}")
        bias, allowed = (attn_mask.to(query.dtype), None) if attn_mask.is_floating_point() else (None, attn_mask)
        if is_causal:  # both count; the op takes one mask
            seen = ones((query.shape[-2], key.shape[-2]), dtype=dtypes.bool, device=query.device).tril()
            allowed, is_causal = seen if allowed is None else allowed & seen, False
    if dropout_p:
        shape = scores_shape(query.array, key.array, value.array, enable_gqa)
        keep = draw_keep(query.physical().array, shape, dropout_p)
    if _weights.get() is not None:
        _record(query, key, bias, allowed, is_causal, scale, enable_gqa)
    return attention_op.call(
        query, key, value, bias, allowed, keep,
        keep_probability=1 - dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa,
    )  # fmt: skip

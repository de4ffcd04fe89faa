"""Multi-head attention with its projections.

Letters: T query positions, S key positions, N batch, D width, H heads, K = D / H.
"""

from __future__ import annotations

from collections.abc import Iterable

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import DtypeError, ShapeError
from tallow.functions.attention import scaled_dot_product_attention
from tallow.functions.dropout import dropout
from tallow.ops.joining import cat
from tallow.ops.linear import linear
from tallow.ops.padding import pad

NAME = "multi_head_attention_forward"


@public("F")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Project query, key and value, compute attention for each head, and project the result.

    Args:
        embed_dim_to_check: D.
        in_proj_weight, in_proj_bias: those of query, key and value, one above the other, (3 D, D) and (3 D).
        use_separate_proj_weight: take q_proj_weight (D, D), k_proj_weight (D, Dk), v_proj_weight (D, Dv) instead.
        bias_k, bias_v: (1, 1, D), a further key and value for all queries.
        add_zero_attn: a further key and value of zeros.
        key_padding_mask: (N, S); True, or a number to add, where a key is not to be seen.
        attn_mask: (T, S) or (N · H, T, S), likewise, for each query.
        need_weights: return the weights too, as a mean over heads unless average_attn_weights=False. Without them the
            scores of all queries are never in memory at once.
        static_k, static_v: (N · H, S, K), in the place of the projected keys and values.
        is_causal: says that attn_mask is causal; without weights and padding it need not be read then.

    Shapes:  query (T, N, D), key (S, N, Dk), value (S, N, Dv), or all without N -> (T, N, D), and weights (N, T, S) or
             (N, H, T, S), or None
    Source:  Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2
    """
    is_batched = _check(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if not is_batched:
        query, key, value = query[:, None], key[:, None], value[:, None]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    length, batch, width = query.shape
    source = key.shape[0]
    if is_causal and attn_mask is None:
        raise ShapeError(f"{NAME}: need attn_mask if specifying the is_causal hint")
    is_causal = is_causal and key_padding_mask is None and not need_weights
    masks = _masks(None if is_causal else attn_mask, key_padding_mask, (batch, num_heads, length, source))
    if use_separate_proj_weight:
        weights = [w for w in (q_proj_weight, k_proj_weight, v_proj_weight) if w is not None]
    else:
        weights = [] if in_proj_weight is None else [in_proj_weight]
    q, k, v = _project((query, key, value), weights, in_proj_bias)
    if bias_k is not None and bias_v is not None:
        k, v = (apply(cat, [x, extra.expand(1, batch, -1)], 0) for x, extra in ((k, bias_k), (v, bias_v)))
        masks = [apply(pad, mask, (0, 1)) for mask in masks]
    elif bias_k is not None or bias_v is not None:
        raise ShapeError(f"{NAME}: pass both bias_k and bias_v, or neither")
    q, k, v = (_split_heads(x, num_heads) for x in (q, k, v))
    if static_k is not None:
        k = static_k.reshape(batch, num_heads, -1, width // num_heads)
    if static_v is not None:
        v = static_v.reshape(batch, num_heads, -1, width // num_heads)
    if add_zero_attn:
        none = zeros(batch, num_heads, 1, width // num_heads, dtype=q.dtype, device=q.device)
        k, v = (apply(cat, [x, none], 2) for x in (k, v))
        masks = [apply(pad, mask, (0, 1)) for mask in masks]
    mask = _merged(masks, q)
    dropout_p = dropout_p if training else 0.0
    seen: Tensor | None = None
    if need_weights:
        attended, seen = _attend_with_weights(q, k, v, mask, dropout_p)
        seen = seen.mean(1) if average_attn_weights else seen
    else:
        allowed = mask.logical_not() if mask is not None and not mask.is_floating_point() else mask
        attended = scaled_dot_product_attention(q, k, v, allowed, dropout_p, is_causal)
    output = apply(linear, attended.permute(2, 0, 1, 3).reshape(length, batch, width), out_proj_weight, out_proj_bias)
    if is_batched:
        return output, seen
    return output[:, 0], None if seen is None else seen[0]


def _check(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, is_separate: bool) -> bool:
    """Return whether there is a batch dim."""
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)}"
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(f"{NAME}: expected all of (T, N, D), or all of (T, D), got {shapes}")
    if query.array.shape[-1] != width or width % heads:
        raise ShapeError(f"{NAME}: expected queries of width {width}, a multiple of {heads} heads, got {shapes}")
    if key.array.shape[:-1] != value.array.shape[:-1] or (not is_separate and key.array.shape != value.array.shape):
        raise ShapeError(f"{NAME}: key and value do not fit each other: {shapes}")
    return query.ndim == 3


def _masks(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, scores: tuple[int, int, int, int]
) -> list[Tensor]:
    """Return the masks in a shape that broadcasts to the scores (N, H, T, S)."""
    batch, heads, length, source = scores
    masks = []
    if attn_mask is not None:
        if tuple(attn_mask.shape) not in ((length, source), (batch * heads, length, source)):
            raise ShapeError(
                f"{NAME}: attn_mask {tuple(attn_mask.shape)} should be {(length, source)} or "
                f"{(batch * heads, length, source)}"
            )
        masks.append(attn_mask[None, None] if attn_mask.ndim == 2 else attn_mask.reshape(scores))
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, source):
            raise ShapeError(f"{NAME}: key_padding_mask {tuple(key_padding_mask.shape)} should be {(batch, source)}")
        masks.append(key_padding_mask[:, None, None])
    for mask in masks:
        if not mask.is_floating_point() and mask.array.dtype != bool:
            raise DtypeError(f"{NAME}: masks must be bool or of floating point, not {mask.dtype}")
    return masks


def _merged(masks: list[Tensor], like: Tensor) -> Tensor | None:
    """Combine masks: into booleans if all are, True where a key is masked; else into numbers to add to the scores."""
    if not masks:
        return None
    if not all(mask.array.dtype == bool for mask in masks):
        masks = [mask if mask.is_floating_point() else _additive(mask, like) for mask in masks]
    first, *rest = masks
    for mask in rest:
        first = first + mask if first.is_floating_point() else first.logical_or(mask)
    return first


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    return zeros(tuple(mask.shape), dtype=like.dtype, device=like.device).masked_fill(mask, float("-inf"))


def _project(inputs: tuple[Tensor, Tensor, Tensor], weights: list[Tensor], bias: Tensor | None) -> Iterable[Tensor]:
    """Project query, key and value, by three weights or by one with the rows of all three."""
    if len(weights) not in (1, 3):
        raise ShapeError(f"{NAME}: a projection weight is None that use_separate_proj_weight asks for")
    query, key, value = inputs
    width = query.shape[-1]
    if (len(weights) == 1 and weights[0].array.shape[:1] != (3 * width,)) or (
        bias is not None and bias.array.shape != (3 * width,)
    ):
        raise ShapeError(f"{NAME}: in_proj_weight ({3 * width}, {width}) and in_proj_bias ({3 * width},) are expected")
    if len(weights) == 1 and query is key and key is value:
        return apply(linear, query, weights[0], bias).chunk(3, -1)
    parts = weights if len(weights) == 3 else weights[0].chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return [apply(linear, x, w, b) for x, w, b in zip(inputs, parts, biases, strict=True)]


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """Split into heads: (T, N, D) -> (N, H, T, K)."""
    length, batch, width = x.shape
    return x.reshape(length, batch, heads, width // heads).permute(1, 2, 0, 3)


def _attend_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> tuple[Tensor, Tensor]:
    scores = (q * max(q.array.shape[-1], 1) ** -0.5) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + mask if mask.is_floating_point() else scores.masked_fill(mask, float("-inf"))
    weights = dropout(scores.softmax(-1), p)
    return weights @ v, weights

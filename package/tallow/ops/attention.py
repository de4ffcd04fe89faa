"""Scaled dot-product attention, in blocks of query positions.

The scores of all queries against all keys never exist at once: forward iterates over blocks of query positions, and
backward recomputes each block's weights instead of keeping them. Memory is that of the operands plus a few blocks.

Letters: H query heads, G key/value heads, T query positions, S key positions, K head width, E value width. `lead`
stands for the dims before (T, K): (B, H), (B), or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tallow import dtypes
from tallow.devices import array_module
from tallow.dtypes import HALVES, widen
from tallow.errors import ShapeError
from tallow.kernels import kernel, run
from tallow.ops.checks import expect_float
from tallow.ops.second_order import Derived
from tallow.ops.table import Array, Index, Result, op

BLOCK_SCORES = 2**22  # elements of a block of scores: 16 MiB in float32
CAUSAL_ROWS = 256  # maximum rows of a causal block, so that few masked scores are computed


@dataclass(slots=True)
class _Attention:
    """One call: the operands, and how they are divided into blocks.

    Attributes:
        groups: query heads that share a key/value head.
        bias: added to the scores; broadcasts as (..., T or 1, S or 1).
        allowed: booleans of such a shape; where False, the score is -∞.
        keep: booleans (*lead, T, S) of the weights that dropout keeps, which are multiplied by `boost`.
    """

    q: Array
    k: Array
    v: Array
    bias: Array | None
    allowed: Array | None
    keep: Array | None
    boost: float
    is_causal: bool
    scale: float
    groups: int

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading dims of the result."""
        return _lead(self.q, self.k, self.v, self.groups)

    def blocks(self) -> Iterator[tuple[slice, int]]:
        """Yield the query positions of each block, and the number of keys they see at most."""
        queries, keys = self.q.shape[-2], self.k.shape[-2]
        rows = max(1, BLOCK_SCORES // max(1, math.prod(self.lead) * keys))
        if self.is_causal:
            rows = min(rows, CAUSAL_ROWS)
        for start in range(0, queries, rows):
            stop = min(start + rows, queries)
            yield slice(start, stop), min(stop, keys) if self.is_causal else keys

    def fold(self, x: Array) -> Array:
        """Merge the query heads that share keys into one matrix: (..., H, T, K) -> (..., G, H/G · T, K)."""
        if self.groups == 1:
            return x
        *lead, heads, length, width = x.shape
        return x.reshape(*lead, heads // self.groups, self.groups * length, width)

    def unfold(self, x: Array) -> Array:
        """Invert `fold`."""
        if self.groups == 1:
            return x
        *lead, heads, rows, width = x.shape
        return x.reshape(*lead, heads * self.groups, rows // self.groups, width)

    def weights(self, rows: slice, keys: int) -> Array:
        """Return softmax(q kᵀ · scale + bias) of a block, folded; a row that sees no key is all zero."""
        xp = array_module(self.q)
        q = self.fold(self.q[..., rows, :]) * self.q.dtype.type(self.scale)
        scores = run("matmul", q, self.k[..., :keys, :].swapaxes(-1, -2))
        by_head = self.unfold(scores)
        if self.bias is not None:
            by_head += _part(self.bias, rows, keys)
        if self.allowed is not None:
            xp.copyto(by_head, -math.inf, where=~_part(self.allowed, rows, keys))
        if self.is_causal and keys > rows.start + 1:
            hidden = xp.arange(keys)[None, :] > xp.arange(rows.start, rows.stop)[:, None]
            xp.copyto(by_head, -math.inf, where=hidden)
        scores = self.fold(by_head)  # a copy has been masked if the product is not contiguous
        if self.bias is None and self.allowed is None:
            return run("softmax", scores)
        blind = scores.max(axis=-1, keepdims=True) == -math.inf
        if xp is np and not blind.any():  # on a GPU, the check would wait
            return run("softmax", scores)
        xp.copyto(scores, 0, where=blind)
        weights = run("softmax", scores)
        xp.copyto(weights, 0, where=blind)
        return weights

    def drop(self, folded: Array, rows: slice, keys: int) -> Array:
        """Apply dropout to a block of weights or of their gradients."""
        if self.keep is None:
            return folded
        return folded * self.fold(self.keep[..., rows, :keys]) * folded.dtype.type(self.boost)

    def value(self) -> Array:
        out = array_module(self.q).zeros((*self.lead, self.q.shape[-2], self.v.shape[-1]), self.q.dtype)
        for rows, keys in self.blocks():
            if keys:
                weights = self.drop(self.weights(rows, keys), rows, keys)
                out[..., rows, :] = self.unfold(run("matmul", weights, self.v[..., :keys, :]))
        return out

    def score_gradients(self, g: Array) -> Iterator[tuple[slice, int, Array, Array, Array]]:
        """Yield the rows, keys, output gradient, dropped weights and score gradients of each block."""
        for rows, keys in self.blocks():
            if keys:
                weights = self.weights(rows, keys)
                g_rows = self.fold(g[..., rows, :])
                d_scores = self.drop(run("matmul", g_rows, self.v[..., :keys, :].swapaxes(-1, -2)), rows, keys)
                d_scores -= _row_products(d_scores, weights)[..., None]
                d_scores *= weights
                yield rows, keys, g_rows, self.drop(weights, rows, keys), d_scores

    def gradients(self, g: Array) -> tuple[Array, Array, Array]:
        """Return the gradients of q, k and v, before broadcasting is undone."""
        xp = array_module(g)
        lead = self.lead
        shared = lead if self.groups == 1 else (*lead[:-1], lead[-1] // self.groups)
        d_q = xp.zeros((*lead, *self.q.shape[-2:]), g.dtype)
        d_k = xp.zeros((*shared, *self.k.shape[-2:]), g.dtype)
        d_v = xp.zeros((*shared, *self.v.shape[-2:]), g.dtype)
        scale = g.dtype.type(self.scale)
        for rows, keys, g_rows, weights, d_scores in self.score_gradients(g):
            d_v[..., :keys, :] += run("matmul", weights.swapaxes(-1, -2), g_rows)
            d_q[..., rows, :] = self.unfold(run("matmul", d_scores, self.k[..., :keys, :]))
            d_k[..., :keys, :] += run("matmul", d_scores.swapaxes(-1, -2), self.fold(self.q[..., rows, :]))
        d_q *= scale
        d_k *= scale
        return d_q, d_k, d_v

    def bias_gradient(self, g: Array) -> Array:
        """Return the gradient of the bias, which may be broadcast along any of its dims."""
        assert self.bias is not None
        xp = array_module(g)
        d_bias = xp.zeros(self.bias.shape, g.dtype)
        for rows, keys, _, _, d_scores in self.score_gradients(g):
            part = _part(d_bias, rows, keys)
            part += _sum_to(self.unfold(d_scores), part.shape)
        return d_bias


def _lead(q: Array, k: Array, v: Array, groups: int) -> tuple[int, ...]:
    shapes = [x.shape[:-2] for x in (k, v)]
    if groups > 1:
        shapes = [(*shape[:-1], shape[-1] * groups) for shape in shapes]
    return np.broadcast_shapes(q.shape[:-2], *shapes)


def scores_shape(query: Array, key: Array, value: Array, enable_gqa: bool) -> tuple[int, ...]:
    """Return the shape of the scores, (..., H, T, S)."""
    groups = _check(query, key, value, enable_gqa)
    return *_lead(query, key, value, groups), query.shape[-2], key.shape[-2]


def _part(mask: Array, rows: slice, keys: int) -> Array:
    """Return the part of an array that broadcasts to the scores that belongs to a block."""
    if mask.ndim >= 2 and mask.shape[-2] != 1:
        mask = mask[..., rows, :]
    return mask[..., :keys] if mask.ndim and mask.shape[-1] != 1 else mask


def _row_products(a: Array, b: Array) -> Array:
    """Return Σ_s a_s b_s along the last axis. CuPy's einsum uses cuBLAS, which a CUDA graph cannot capture."""
    xp = array_module(a)
    return np.einsum("...s,...s->...", a, b) if xp is np else (a * b).sum(axis=-1)


def _sum_to(x: Array, shape: tuple[int, ...]) -> Array:
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1))
    return x.sum(axis=axes, keepdims=True).reshape(shape)


def _attention_value(
    query: Array, key: Array, value: Array, bias: Array | None, allowed: Array | None, keep: Array | None
) -> Array:
    is_usual = bias is None and allowed is None and keep is None and query.size and key.size
    if is_usual and key.shape[:-1] == value.shape[:-1]:  # what else may be wrong, the kernels raise
        return _value(query, key, value, None, query.shape[-1] ** -0.5, False, 1)[0]
    op = scaled_dot_product_attention
    return op.function(query, key, value, bias, allowed, keep)[0]


@op("", halves=True, value=_attention_value, batched="itself")
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None = None,
    allowed: Index = None,
    keep: Index = None,
    *,
    keep_probability: float = 1.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Result:
    """Return softmax(q kᵀ · scale + bias) v, with dropout of the weights.

    Shapes:  query (..., H, T, K), key (..., G, S, K), value (..., G, S, E) -> (..., H, T, E); G = H, or with
             `enable_gqa` a divisor of H; bias, allowed and keep broadcast to (..., H, T, S)
    Source:  Vaswani et al. 2017, arXiv:1706.03762, eq. 1; blocks and recomputation: Dao et al. 2022, arXiv:2205.14135
    """
    expect_float("scaled_dot_product_attention", query)
    groups = _check(query, key, value, enable_gqa)
    for mask in (bias, allowed):
        if mask is not None:
            _check_mask(mask, (*_lead(query, key, value, groups), query.shape[-2], key.shape[-2]))
    scale = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
    boost = 1 / keep_probability if keep_probability else 0.0

    def in_blocks() -> _Attention:
        q, k, v = widen(query), widen(key), widen(value)
        additive_mask = None if bias is None else widen(bias)
        return _Attention(q, k, v, additive_mask, allowed, keep, boost, is_causal, scale, groups)

    if keep is None:
        mask = _combine_masks(bias, allowed, query)
        y, gradients = _without_dropout(query, key, value, mask, scale, is_causal, groups)
    else:
        y, gradients = in_blocks().value(), lambda g: in_blocks().gradients(g)

    def backward(g: Array) -> tuple[object, ...]:
        return *gradients(g), None if bias is None else lambda: in_blocks().bias_gradient(g)

    return y, backward


@scaled_dot_product_attention.definition(unneeded="q k v mask stats gradients")
def _(
    *, query: Derived, key: Derived, value: Derived, bias: Derived, allowed: Derived, keep: Derived, boost: float,
    is_causal: bool, scale: float, groups: int,
) -> Derived:  # fmt: skip
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = query @ key.transpose(-1, -2) * scale
    if bias is not None:
        scores = scores + bias
    hidden = None if allowed is None else ~allowed
    if is_causal:
        hidden = query.new_ones(query.shape[-2], key.shape[-2], dtype=dtypes.bool).triu(1)
    if hidden is None:
        weights = scores.softmax(-1)
    else:  # by a finite number, because a query may see no key at all
        weights = scores.masked_fill(hidden, -1e30).softmax(-1).masked_fill(hidden, 0)
    return (weights if keep is None else weights * keep * boost) @ value


def _without_dropout(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float, is_causal: bool, groups: int
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Compute attention without dropout by the kernels: the value, and a function for the gradients of q, k and v."""
    y, stats = _value(q, k, v, mask, scale, is_causal, groups)
    return y, lambda g: run("attention_backward", g, q, k, v, mask, stats, scale, is_causal, groups)


def _value(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float, is_causal: bool, groups: int
) -> tuple[Array, Array | None]:
    """Return the value, and statistics for backward or None."""
    if q.ndim > 1 and q.shape[-2] == 1:
        if mask is not None:
            k, v, mask = _seen(k, v, mask)
        if mask is None and q.ndim == 4 and not is_causal and _is_one_batch(q, k, v, groups):
            return run("attention_decode", q, k, v, scale), None
    value: tuple[Array, Array | None] = run("attention", q, k, v, mask, scale, is_causal, groups)
    return value


def _seen(k: Array, v: Array, mask: Array) -> tuple[Array, Array, Array | None]:
    """Return keys, values and mask of one query, without the last keys if the mask hides them; no mask if it is zero.

    A cache of fixed size has room for more keys than it holds. Hidden keys have no weight, so the statistics for
    backward are those of all keys.
    """
    is_one_row = mask.ndim > 0 and mask.size == mask.shape[-1] == k.shape[-2]
    if type(mask) is not np.ndarray or mask.dtype.kind != "f" or not is_one_row:
        return k, v, mask
    places = np.flatnonzero(mask != -math.inf)
    if not places.size:
        return k, v, mask
    end = int(places[-1]) + 1
    mask = mask[..., :end]
    return k[..., :end, :], v[..., :end, :], mask if mask.any() else None


def _combine_masks(bias: Array | None, allowed: Array | None, like: Array) -> Array | None:
    """Combine both masks into one that is added to the scores, no larger than they are before broadcasting.

    With half-precision operands the result is float32, unless it is the bias itself.
    """
    if allowed is None:
        return bias
    dtype = np.float32 if like.dtype in HALVES else like.dtype.type
    return array_module(like).where(allowed, dtype(0) if bias is None else widen(bias), dtype(-math.inf))


def _check(query: Array, key: Array, value: Array, enable_gqa: bool) -> int:
    """Return the number of query heads per key/value head. Raises ShapeError if the operands do not fit each other."""
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise ShapeError(
            f"scaled_dot_product_attention: expected at least two dims of each, got {_shapes(query, key, value)}"
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"scaled_dot_product_attention: {_shapes(query, key, value)}; query and key must have equal widths, key "
            "and value equal lengths"
        )
    if not enable_gqa:
        return 1
    heads, kv_heads = (x.shape[-3] if x.ndim > 2 else 0 for x in (query, key))
    if not kv_heads or heads % kv_heads or value.shape[:-2] != key.shape[:-2]:
        raise ShapeError(
            f"scaled_dot_product_attention: enable_gqa with {_shapes(query, key, value)}; key and value must have "
            "equal numbers of heads, which divides that of query"
        )
    return heads // kv_heads


def _shapes(query: Array, key: Array, value: Array) -> str:
    return f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"


def _check_mask(mask: Array, scores: tuple[int, ...]) -> None:
    fits = mask.ndim <= len(scores)
    if not fits or any(n not in (1, m) for n, m in zip(mask.shape[::-1], scores[::-1], strict=False)):
        raise ShapeError(
            f"scaled_dot_product_attention: attn_mask {tuple(mask.shape)} does not broadcast to the scores {scores}"
        )


def _is_one_batch(query: Array, key: Array, value: Array, groups: int) -> bool:
    """Return whether nothing is broadcast and values are as wide as keys, as attention_decode requires."""
    batch, heads = query.shape[:2]
    return key.size > 0 and key.shape == value.shape and key.shape[:-2] == (batch, heads // groups)


@kernel("attention", "array", round_like=0)
def attention_array(
    q: Array, k: Array, v: Array, bias: Array | None, scale: float, is_causal: bool, groups: int
) -> tuple[Array, None]:
    """Return the output, and None for the statistics: backward recomputes the weights.

    Shapes: q (..., H, T, K), k (..., G, S, K), v (..., G, S, E) -> (..., H, T, E); H = G · groups, or broadcast
    """
    return _Attention(q, k, v, bias, None, None, 1.0, is_causal, scale, groups).value(), None


@kernel("attention_backward", "array", round_like=0)
def attention_backward_array(
    g: Array, q: Array, k: Array, v: Array, bias: Array | None, stats: Array | None, scale: float, is_causal: bool,
    groups: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the gradients of q, k and v; `stats` is for compiled kernels."""
    return _Attention(q, k, v, bias, None, None, 1.0, is_causal, scale, groups).gradients(g)


@kernel("attention_decode", "array", round_like=0)
def attention_decode_array(q: Array, k: Array, v: Array, scale: float) -> Array:
    """Return softmax(q kᵀ · scale) v for one query position.

    Shapes: q (B, H, 1, K), k and v (B, G, S, K) -> (B, H, 1, K)
    """
    batch, heads, _, width = q.shape
    kv_heads = k.shape[1]
    grouped = (q * q.dtype.type(scale)).reshape(batch, kv_heads, heads // kv_heads, width)
    weights = run("softmax", run("matmul", grouped, k.swapaxes(-1, -2)))
    return run("matmul", weights, v).reshape(q.shape)

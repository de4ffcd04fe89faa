"""attention, its gradient and attention_decode; see src/{attention,attention_decode}_f32.c."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, broadcasts_to, contiguous, is_plain
from tallow.kernels.bindings.threads import by_range, by_steps, call_alone, call_small, is_short
from tallow.kernels.library import BACKEND, FLOAT, INT, OFFSET, POINTER, SIZE, CFunction, function
from tallow.kernels.table import PLANS, kernel

_attention_decode = function("tl_attention_decode_f32", None, *[POINTER] * 4, *[SIZE] * 5, *[POINTER] * 3, FLOAT)
_attention = function("tl_attention_f32", None, *[POINTER] * 7, SIZE, SIZE, POINTER, POINTER, INT, POINTER, FLOAT)
_attention_backward = function(
    "tl_attention_backward_f32", None, *[POINTER] * 10, SIZE, SIZE, POINTER, POINTER, INT, POINTER, FLOAT
)
_attention_scratch = function("tl_attention_scratch", SIZE, POINTER)
_Sizes = SIZE * 6

Sizes = tuple[int, ...]


def float32_one_query(q: Array, k: Array, v: Array, scale: float) -> bool:
    """float32 arrays q (B, H, 1, K), k and v (B, G, S, K), with at least one position."""
    return (
        q.dtype == k.dtype == v.dtype == FLOAT32 and q.ndim == k.ndim == v.ndim == 4 and q.shape[2] == 1 and k.size > 0
    )


@kernel("attention_decode", BACKEND, accepts=float32_one_query)
def attention_decode(q: Array, k: Array, v: Array, scale: float) -> Array:
    """Return softmax(q kᵀ · scale) v for one query position; k and v may be views of a longer cache.

    Shapes:  q (B, H, 1, K), k and v (B, G, S, K), G divides H -> (B, H, 1, K)
    """
    batch, heads, _, width = q.shape
    kv_heads, s = k.shape[1:3]
    if k.shape != v.shape or k.shape != (batch, kv_heads, s, width) or k.size == 0 or heads % kv_heads:
        raise ShapeError(f"attention_decode: q {q.shape}, k {k.shape} and v {v.shape} do not fit each other")
    q = contiguous(q)
    k, v = _with_contiguous_heads(k), _with_contiguous_heads(v)
    y = np.empty(q.shape, FLOAT32)
    group = heads // kv_heads
    steps, work = (_steps(k.strides), _steps(v.strides)), 2.0 * batch * heads * s * width
    arguments = (y, q, k, v, batch, heads, kv_heads, s, width, *steps)
    if is_short(work):
        call_alone(_attention_decode, arguments, group * s, (scale,))
        return y
    # Threads divide sequences, or the heads of one: what a part adds to pointers, and to the numbers of either.
    units, axis, own = (kv_heads, 1, group) if batch == 1 else (batch, 0, heads)
    pointers = [(i, start, 0) for i, start in enumerate((own * width * ITEM,) * 2 + (k.strides[axis], v.strides[axis]))]
    sizes = [(5, -group, -group), (6, -1, -1)] if batch == 1 else [(4, -1, -1)]
    by_steps(
        _attention_decode, arguments, work, units, *pointers, *sizes, scratch=group * s, numbers=(scale,)
    )  # fmt: skip
    return y


def float32_attention(
    q: Array, k: Array, v: Array, bias: Array | None, scale: float, is_causal: bool, groups: int
) -> bool:
    """float32 arrays q (B, H, T, K), k (B, G, S, K), v (B, G, S, E), no axis empty; H = G · groups; bias or None."""
    if not q.dtype == k.dtype == v.dtype == FLOAT32 or not _fit(q.shape, k.shape, v.shape, groups):
        return False
    return bias is None or _is_float32_for(bias, (*q.shape[:3], k.shape[2]))


@lru_cache(PLANS)
def _fit(q: Sizes, k: Sizes, v: Sizes, groups: int) -> bool:
    if not len(q) == len(k) == len(v) == 4:
        return False
    (batch, heads, _, width), (_, kv_heads, keys, _) = q, k
    fits = k == (batch, kv_heads, keys, width) and v[:3] == k[:3]
    return fits and min(*q, *k, v[3]) > 0 and heads == kv_heads * groups


def _is_float32_for(bias: Array, scores: tuple[int, ...]) -> bool:
    """Return whether the bias is float32 and broadcasts to the scores."""
    return bias.dtype == FLOAT32 and broadcasts_to(bias.shape, scores)


def float32_attention_backward(
    g: Array, q: Array, k: Array, v: Array, bias: Array | None, stats: Array | None, scale: float, is_causal: bool,
    groups: int,
) -> bool:  # fmt: skip
    """As attention: float32 arrays g (B, H, T, E) and q, k, v, with the stats of a compiled forward pass."""
    if stats is None or not float32_attention(q, k, v, bias, scale, is_causal, groups):
        return False
    return (
        g.dtype == stats.dtype == FLOAT32 and g.shape == (*q.shape[:3], v.shape[3]) and stats.shape == (*q.shape[:3], 2)
    )


class _Plan:
    """Sizes and strides of the operands of both passes, for C; without strides, those of contiguous arrays.

    Raises: ShapeError if the operands do not fit each other.
    """

    def __init__(self, groups: int, q: Sizes, k: Sizes, v: Sizes, *strides: Sizes) -> None:
        if not _fit(q, k, v, groups):
            raise ShapeError(f"attention: q {q}, k {k} and v {v} do not fit each other")
        self.result, self.stats = (*q[:3], v[3]), (*q[:3], 2)
        batch, heads, t, width = q
        _, kv_heads, s, value_width = v
        self.count = batch * kv_heads
        self.work = 2.0 * batch * heads * t * s * (width + value_width)
        self._sizes = _Sizes(heads, kv_heads, t, s, width, value_width)
        steps = [[n // ITEM for n in each[:3]] for each in strides]
        steps = steps or [[n[1] * n[2] * n[3], n[2] * n[3], n[3]] for n in (q, k, v)]
        self._strides = (OFFSET * 12)(*(step for each in steps for step in each))
        self.pointers = ctypes.addressof(self._sizes), ctypes.addressof(self._strides)
        self.scratch_length = _attention_scratch(self._sizes)

    def run(
        self, function: CFunction, arrays: Sequence[Array], bias: Array | None, scale: float, is_causal: bool,
        times: float = 1.0,
    ) -> None:  # fmt: skip
        """Call a C function for parts of the key/value heads.

        Args:    arrays: those of the function before the bias; times: its work, in forward passes
        """
        by_bias = None
        if bias is not None:
            bias = contiguous(bias)
            by_bias = _strides_to_broadcast(bias)
        of_all = (0, self.count, *self.pointers, is_causal, np.empty(self.scratch_length, FLOAT32), scale)
        if not call_small(function, times * self.work, *arrays, bias, by_bias, *of_all):
            by_range(
                function, (*arrays, bias, by_bias), self.count, times * self.work, *self.pointers, is_causal,
                scratch=self.scratch_length, numbers=(scale,),
            )  # fmt: skip


_plan_of = lru_cache(PLANS)(_Plan)


def _strides_to_broadcast(bias: Array) -> Array:
    """Return the strides of the bias for each dim of the scores, 0 where it is broadcast."""
    own = [0 if n == 1 else stride // ITEM for n, stride in zip(bias.shape, bias.strides, strict=True)]
    return np.array([0] * (4 - len(own)) + own, np.intp)


@kernel("attention", BACKEND, accepts=float32_attention)
def attention(
    q: Array, k: Array, v: Array, bias: Array | None, scale: float, is_causal: bool, groups: int
) -> tuple[Array, Array]:
    """Return softmax(q kᵀ · scale + bias) v, and statistics of each row of scores for backward.

    Shapes:  q (B, H, T, K), k (B, G, S, K), v (B, G, S, E), bias to broadcast -> (B, H, T, E), (B, H, T, 2)
    """
    if not q.dtype == k.dtype == v.dtype == FLOAT32:
        raise ShapeError(f"attention: q {q.dtype}, k {k.dtype} and v {v.dtype} must be float32")
    if q.flags.carray and k.flags.carray and v.flags.carray:
        plan = _plan_of(groups, q.shape, k.shape, v.shape)
    else:
        q, k, v = _with_contiguous_heads(q), _with_contiguous_heads(k), _with_contiguous_heads(v)
        plan = _plan_of(groups, q.shape, k.shape, v.shape, q.strides, k.strides, v.strides)
    if bias is not None and not _is_float32_for(bias, (*q.shape[:3], k.shape[2])):
        raise ShapeError(f"attention: a {bias.dtype} bias {bias.shape} for q {q.shape} and k {k.shape}")
    y, stats = np.empty(plan.result, FLOAT32), np.empty(plan.stats, FLOAT32)
    plan.run(_attention, (y, stats, q, k, v), bias, scale, is_causal)
    return y, stats


@kernel("attention_backward", BACKEND, accepts=float32_attention_backward)
def attention_backward(
    g: Array, q: Array, k: Array, v: Array, bias: Array | None, stats: Array | None, scale: float, is_causal: bool,
    groups: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the gradients of q, k and v, from that of the output and the stats of the forward pass."""
    if stats is None or not float32_attention_backward(g, q, k, v, bias, stats, scale, is_causal, groups):
        raise ShapeError(f"attention_backward: g {g.shape}, q {q.shape}, k {k.shape}, v {v.shape} do not fit")
    q, k, v, g = (_with_contiguous_heads(x) for x in (q, k, v, g))
    plan = _plan_of(groups, q.shape, k.shape, v.shape, q.strides, k.strides, v.strides, g.strides)
    dq, dk, dv = np.empty(q.shape, FLOAT32), np.empty(k.shape, FLOAT32), np.empty(v.shape, FLOAT32)
    plan.run(_attention_backward, (dq, dk, dv, q, k, v, g, contiguous(stats)), bias, scale, is_causal, 2.5)
    return dq, dk, dv


def _with_contiguous_heads(array: Array) -> Array:
    if is_plain(array):
        return array
    is_usable = all(stride % ITEM == 0 for stride in array.strides) and array.strides[3] == ITEM and array.flags.aligned
    return array if is_usable and array.dtype == FLOAT32 else contiguous(array)


@lru_cache(PLANS)
def _steps(strides: Sizes) -> Array:
    """Return the strides of all dims but the last in elements."""
    return np.array([stride // ITEM for stride in strides[:3]], np.intp)

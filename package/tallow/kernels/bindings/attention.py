"""rotary, attention_decode: see src/{rotary,attention_decode}_f32.c."""

from __future__ import annotations

import ctypes

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, address, compiled, contiguous
from tallow.kernels.library import FLOAT, INT, OFFSET, POINTER, SIZE, function

_rotary = function("tl_rotary_f32", None, POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, SIZE, INT)
_attention_decode = function(
    "tl_attention_decode_f32", None, *[POINTER] * 4, *[SIZE] * 5, POINTER, POINTER, FLOAT, POINTER
)
_Strides = OFFSET * 3


def float32_heads(x: Array, cos: Array, sin: Array, interleaved: bool) -> bool:
    """float32 arrays (..., T, K) and, twice, (T, K/2)."""
    return x.dtype == FLOAT32 and cos.dtype == FLOAT32 and sin.dtype == FLOAT32 and x.ndim >= 2 and cos.ndim == 2


def float32_one_query(q: Array, k: Array, v: Array, scale: float) -> bool:
    """float32 arrays q (B, H, 1, K), k and v (B, G, S, K), with at least one position."""
    return (
        q.dtype == k.dtype == v.dtype == FLOAT32 and q.ndim == k.ndim == v.ndim == 4 and q.shape[2] == 1 and k.size > 0
    )


@compiled("rotary", float32_heads)
def rotary(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """Turn pairs of each head by the angle of their position.  Shapes: x (..., T, K) -> the same; cos, sin (T, K/2)."""
    t, k = x.shape[-2:]
    if k % 2 or cos.shape != (t, k // 2) or sin.shape != cos.shape:
        raise ShapeError(f"rotary: x {x.shape} needs cos and sin of shape {(t, k // 2)}, not {cos.shape}, {sin.shape}")
    x, cos, sin = contiguous(x), contiguous(cos), contiguous(sin)
    y = np.empty(x.shape, FLOAT32)
    if x.size:
        _rotary(address(y), address(x), address(cos), address(sin), x.size // (t * k), t, k, interleaved)
    return y


@compiled("attention_decode", float32_one_query)
def attention_decode(q: Array, k: Array, v: Array, scale: float) -> Array:
    """softmax(q kᵀ · scale) v for one query position; k and v may be views of a longer cache.

    Shapes:  q (B, H, 1, K), k and v (B, G, S, K), G divides H -> (B, H, 1, K)
    """
    batch, heads, _, width = q.shape
    kv_heads, s = k.shape[1:3]
    if k.shape != v.shape or k.shape != (batch, kv_heads, s, width) or k.size == 0 or heads % kv_heads:
        raise ShapeError(f"attention_decode: q {q.shape}, k {k.shape} and v {v.shape} do not fit each other")
    q = contiguous(q)
    k, v = _with_contiguous_heads(k), _with_contiguous_heads(v)
    y = np.empty(q.shape, FLOAT32)
    scratch = np.empty(heads // kv_heads * s, FLOAT32)
    _attention_decode(
        address(y), address(q), address(k), address(v), batch, heads, kv_heads, s, width,
        _strides(k), _strides(v), scale, address(scratch),
    )  # fmt: skip
    return y


def _with_contiguous_heads(array: Array) -> Array:
    whole = all(stride % ITEM == 0 for stride in array.strides) and array.strides[3] == ITEM and array.flags.aligned
    return array if whole and array.dtype == FLOAT32 else contiguous(array)


def _strides(array: Array) -> ctypes.Array[ctypes.c_ssize_t]:
    return _Strides(*(stride // ITEM for stride in array.strides[:3]))

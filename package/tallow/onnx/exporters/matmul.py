"""Exporters of products of matrices, and of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.elementwise import scaled
from tallow.onnx.exporters.registry import exports


@exports("mm", "bmm")
def _(g: Builder, input: Value, mat2: Value) -> Value:
    return g.op("MatMul", input, mat2)


@exports("mv")
def _(g: Builder, input: Value, vec: Value) -> Value:
    return g.op("MatMul", input, vec)


@exports("dot")
def _(g: Builder, input: Value, tensor: Value) -> Value:
    return g.op("MatMul", input, tensor)


@exports("matmul")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("MatMul", input, other)


@exports("linear")
def _(g: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """Return x Wᵀ + b: a Gemm for rows; else a MatMul with the transposed weight, see `layouts`."""
    if input.ndim == 2 and weight.ndim == 2 and input.dtype.is_floating_point:
        return g.op("Gemm", input, weight, bias, transB=1)
    turned = g.transpose(weight, [1, 0]) if weight.ndim == 2 else weight
    product = g.op("MatMul", input, turned)
    return product if bias is None else g.op("Add", product, bias)


@exports("addmm")
def _(g: Builder, input: Value, mat1: Value, mat2: Value, beta: float = 1, alpha: float = 1) -> Value:
    if input.dtype.is_floating_point and beta != 0:
        return g.op("Gemm", mat1, mat2, input, alpha=float(alpha), beta=float(beta))
    return plus_product(g, input, mat1, mat2, beta, alpha)


@exports("addmv")
def _(g: Builder, input: Value, mat: Value, vec: Value, beta: float = 1, alpha: float = 1) -> Value:
    return plus_product(g, input, mat, vec, beta, alpha)


@exports("baddbmm")
def _(g: Builder, input: Value, batch1: Value, batch2: Value, beta: float = 1, alpha: float = 1) -> Value:
    return plus_product(g, input, batch1, batch2, beta, alpha)


def plus_product(g: Builder, input: Value, first: Value, second: Value, beta: float = 1, alpha: float = 1) -> Value:
    """Return β input + α first @ second."""
    product = scaled(g, g.op("MatMul", first, second), alpha)
    return product if beta == 0 else g.op("Add", scaled(g, input, beta), product)


@exports("addbmm")
def _(g: Builder, input: Value, batch1: Value, batch2: Value, beta: float = 1, alpha: float = 1) -> Value:
    product = scaled(g, g.op("ReduceSum", g.op("MatMul", batch1, batch2), [0], keepdims=0), alpha)
    return product if beta == 0 else g.op("Add", scaled(g, input, beta), product)


@exports("linalg_det")
def _(g: Builder, A: Value) -> Value:
    return g.op("Det", A)


@exports("outer")
def outer(g: Builder, input: Value, vec2: Value) -> Value:
    """Return the product of each pair of elements of two vectors."""
    return g.op("Mul", g.op("Unsqueeze", input, [1]), vec2)


@exports("addr")
def _(g: Builder, input: Value, vec1: Value, vec2: Value, beta: float = 1, alpha: float = 1) -> Value:
    product = scaled(g, outer(g, vec1, vec2), alpha)
    return product if beta == 0 else g.op("Add", scaled(g, input, beta), product)


@exports("bilinear")
def _(g: Builder, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    product = g.op("Einsum", input1, weight, input2, equation="...i,oij,...j->...o")
    return product if bias is None else g.op("Add", product, bias)


@exports("einsum")
def _(g: Builder, equation: Any, operands: Any) -> Value:
    values = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if not isinstance(equation, str):
        raise UnsupportedError("einsum with lists of numbers in place of an equation")
    return g.op("Einsum", *values, equation=equation)


@exports("nn.functional.scaled_dot_product_attention")
def _(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
) -> Value:
    if dropout_p:
        raise UnsupportedError(f"dropout_p={dropout_p}: a random mask")
    is_bias = attn_mask is not None and attn_mask.dtype is not dtypes.bool
    bias, allowed = (attn_mask, None) if is_bias else (None, attn_mask)
    return attention_by_masks(g, query, key, value, bias, allowed, None, is_causal, scale, enable_gqa)


@exports("scaled_dot_product_attention")
def attention_by_masks(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    bias: Value | None = None,
    allowed: Value | None = None,
    keep: Value | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Return softmax(q kᵀ · scale + mask) v in the operators of every version; a row that sees no key is zero."""
    if keep is not None:
        raise UnsupportedError("dropout of the weights: a random mask")
    if enable_gqa:
        key, value = _for_each_head(g, key, query), _for_each_head(g, value, query)
    order = [*range(key.ndim - 2), key.ndim - 1, key.ndim - 2]
    width = g.size(query, -1)
    scale = max(width, 1) ** -0.5 if scale is None else scale
    scores = g.op("MatMul", g.op("Mul", query, float(scale), shape=query.shape), g.transpose(key, order))
    if bias is not None:
        scores = g.op("Add", scores, g.cast(bias, query.dtype))
    if is_causal:
        allowed = _causal(g, query, key)
    if allowed is None:
        return g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    lowest = -1e4 if query.dtype is dtypes.float16 else -1e30
    weights = g.op("Softmax", g.op("Where", allowed, scores, g.scalar(lowest, query), dtype=query.dtype), axis=-1)
    if not is_causal:
        weights = g.op("Where", allowed, weights, g.scalar(0.0, query), dtype=query.dtype)
    return g.op("MatMul", weights, value)


def _causal(g: Builder, query: Value, key: Value) -> Value:
    """Return which keys each query sees: those up to its own place."""
    rows, columns = g.size(query, -2), g.size(key, -2)
    if isinstance(rows, int) and isinstance(columns, int):
        return g.constant(np.tril(np.ones((rows, columns), bool)))
    places = [g.op("Range", g.constant(0), g.constant(n), g.constant(1), shape=(None,)) for n in (rows, columns)]
    made: Value = g.op("GreaterOrEqual", g.op("Unsqueeze", places[0], [1]), places[1])
    return made


def _for_each_head(g: Builder, x: Value, query: Value) -> Value:
    """Repeat each head of keys or values for the queries that share it."""
    heads, groups = g.size(query, -3), g.size(x, -3)
    if heads == groups:
        return x
    sizes = g.sizes(x)
    wide = g.op("Unsqueeze", x, [-3])
    copies = g.op("Expand", wide, g.ints([*sizes[:-2], heads // groups, *sizes[-2:]]))
    shape = None if x.shape is None else [*x.shape[:-3], heads, *x.shape[-2:]]
    return g.reshape(copies, [*sizes[:-3], heads, *sizes[-2:]], shape)


@exports("rotary")
def _(g: Builder, input: Value, cos: Value, sin: Value, interleaved: bool = False) -> Value:
    """Rotate pairs: p cos - q sin, p sin + q cos, of halves or of neighbours."""
    half = g.size(input, -1) // 2
    cos, sin = g.cast(cos, input.dtype), g.cast(sin, input.dtype)
    if interleaved:
        p, q = (g.op("Slice", input, [start], [2**63 - 1], [-1], [2]) for start in (0, 1))
    else:
        p, q = g.op("Split", input, [half, half], axis=-1, outputs=2)
    first = g.op("Sub", g.op("Mul", p, cos), g.op("Mul", q, sin))
    second = g.op("Add", g.op("Mul", p, sin), g.op("Mul", q, cos))
    if not interleaved:
        return g.op("Concat", first, second, axis=-1)
    pairs = g.op("Concat", g.op("Unsqueeze", first, [-1]), g.op("Unsqueeze", second, [-1]), axis=-1)
    return g.reshape(pairs, g.sizes(input), input.shape)

"""com.microsoft: layers that onnxruntime's optimizers write as one operator.

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
from tallow.onnx.operators.convolution import conv
from tallow.onnx.operators.linear import gemm
from tallow.onnx.operators.registry import operator as any_operator
from tallow.ops.dims import normalize_dim

operator = partial(any_operator, domain="com.microsoft")


@operator("Gelu", since=1)
def gelu(x: Tensor) -> Tensor:
    """Return x · Φ(x)."""
    return F.gelu(x)


@operator("BiasGelu", since=1)
def bias_gelu(a: Tensor, b: Tensor) -> Tensor:
    """Return the GELU of a + b."""
    return F.gelu(a + b)


@operator("FastGelu", since=1)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the GELU of x + bias, approximated by a tanh."""
    return F.gelu(x if bias is None else x + bias, approximate="tanh")


@operator("QuickGelu", since=1)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    """Return x · sigmoid(alpha · x)."""
    return F.silu(x) if alpha == 1 else x * tl.sigmoid(alpha * x)


@any_operator("SimplifiedLayerNormalization", since=1)
def simplified_layer_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1, outputs: int = 1
) -> Any:
    """Divide by the root mean square over the dims from `axis` on; a second output is its inverse."""
    axis = normalize_dim(axis, x.dim(), "SimplifiedLayerNormalization")
    y = F.rms_norm(x, x.shape[axis:], scale, epsilon)
    if outputs == 1:
        return y
    axes = tuple(range(axis, x.dim()))
    return y, tl.rsqrt((x.to(tl.float32) ** 2).mean(axes, keepdim=True) + epsilon)


@operator("SkipLayerNormalization", since=1)
def skip_layer_normalization(
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    outputs: int = 1,
) -> Any:
    """Normalize x + skip + bias over the last dim; the fourth output is this sum."""
    total = x + skip if bias is None else x + skip + bias
    y = F.layer_norm(total, total.shape[-1:], gamma, beta, epsilon)
    if outputs == 1:
        return y
    var, mean = tl.var_mean(total, (-1,), correction=0, keepdim=True)
    return (y, mean, tl.rsqrt(var + epsilon), total)[:outputs]


@operator("SkipSimplifiedLayerNormalization", since=1)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12, outputs: int = 1
) -> Any:
    """Divide x + skip + bias by its root mean square over the last dim; the fourth output is this sum."""
    total = x + skip if bias is None else x + skip + bias
    y = F.rms_norm(total, total.shape[-1:], gamma, epsilon)
    if outputs == 1:
        return y
    square = (total**2).mean((-1,), keepdim=True)
    return (y, total.mean((-1,), keepdim=True), tl.rsqrt(square + epsilon), total)[:outputs]


@operator("EmbedLayerNormalization", since=1)
def embed_layer_normalization(
    input_ids: Tensor,
    segment_ids: Tensor | None,
    word_embedding: Tensor,
    position_embedding: Tensor,
    segment_embedding: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
    outputs: int = 1,
) -> Any:
    """Add and normalize the embeddings of words, positions and segments.

    Further outputs are the number of words that the mask keeps, and the sum of the embeddings.

    Shapes:  input_ids (B, T) -> (B, T, D), (B,), (B, T, D)
    """
    words = F.embedding(input_ids, word_embedding)
    if position_ids is None:
        total = words + position_embedding[: input_ids.shape[1]]
    else:
        total = words + F.embedding(position_ids, position_embedding)
    if segment_ids is not None and segment_embedding is not None:
        total = total + F.embedding(segment_ids, segment_embedding)
    y = F.layer_norm(total, total.shape[-1:], gamma, beta, epsilon)
    if outputs == 1:
        return y
    count = tl.zeros(input_ids.shape[0], dtype=tl.int32) if mask is None else mask.sum(1).to(tl.int32)
    return (y, count, total)[:outputs]


@operator("BiasAdd", since=1)
def bias_add(x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    """Return x + bias + skip."""
    return x + bias + skip


@operator("FusedMatMul", since=1)
def fused_matmul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    """Return alpha · a @ b; `transBatchA` moves the first dim of `a` before its last one."""
    if transBatchA:
        a = a.movedim(0, -2)
    if transBatchB:
        b = b.movedim(0, -2)
    product = tl.matmul(a.transpose(-1, -2) if transA else a, b.transpose(-1, -2) if transB else b)
    return product if alpha == 1 else product * alpha


def _activated(x: Tensor, activation: str, params: Sequence[float]) -> Tensor:
    """Apply the activation of a fused operator.  Raises: UnsupportedError for another name"""
    known = {"": lambda: x, "Relu": lambda: F.relu(x), "Tanh": lambda: tl.tanh(x), "Sigmoid": lambda: tl.sigmoid(x)}
    known |= {
        "LeakyRelu": lambda: F.leaky_relu(x, params[0]),
        "Clip": lambda: tl.clamp(x, *params[:2]),
        "HardSigmoid": lambda: tl.clamp(x * params[0] + params[1], 0, 1),
        "Elu": lambda: F.elu(x, params[0]),
        "Gelu": lambda: F.gelu(x),
        "Softplus": lambda: F.softplus(x),
    }
    if activation not in known:
        raise UnsupportedError(
            f"the activation {activation!r:.40} of a fused operator", hint=f"known: {', '.join(known)}"
        )
    return known[activation]()


@operator("FusedConv", since=1)
def fused_conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    z: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Convolve, add `z`, and apply an activation."""
    y = conv(
        x,
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return _activated(y if z is None else y + z, activation, activation_params)


@operator("FusedGemm", since=1)
def fused_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    activation: str = "",
    activation_alpha: float = 0.0,
    activation_beta: float = 0.0,
    activation_gamma: float = 0.0,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """Return an activation of alpha · a @ b + beta · c."""
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _activated(y, activation, (activation_alpha, activation_beta, activation_gamma))

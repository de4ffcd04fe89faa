"""The multi-head attention layer.

Letters: T query positions, S key positions, N batch, D width, H heads.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import FailedAssertionError
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.linear import NonDynamicallyQuantizableLinear
from tallow.nn.module import Module
from tallow.nn.parameter import empty_parameter


class MultiheadAttention(Module):
    """Project query, key and value, compute softmax(q kᵀ / √(D / H)) v in each of H heads, and project the result.

    Args:
        dropout: dropout probability of the attention weights in training.
        add_bias_kv: append a learned key and value.
        add_zero_attn: append a key and value of zeros.
        kdim, vdim: features of key and value; None means D.
        batch_first: query, key and value are (N, T, D) rather than (T, N, D).

    Shapes:  query (T, N, D), key (S, N, kdim), value (S, N, vdim), or all without N; key_padding_mask (N, S), True
             where a key is masked out, or a float mask to add; attn_mask (T, S) or (N · H, T, S), likewise
             -> (T, N, D), and weights (N, T, S), or (N, H, T, S) with average_attn_weights=False, or None with
             need_weights=False, which uses less memory
    Source:  Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise FailedAssertionError(
                f"embed_dim must be divisible by num_heads, and both positive, got {embed_dim} and {num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        factory = {"device": device, "dtype": dtype}
        same = self._qkv_same_embed_dim
        self.q_proj_weight = None if same else empty_parameter(embed_dim, embed_dim, **factory)
        self.k_proj_weight = None if same else empty_parameter(embed_dim, self.kdim, **factory)
        self.v_proj_weight = None if same else empty_parameter(embed_dim, self.vdim, **factory)
        self.in_proj_weight = empty_parameter(3 * embed_dim, embed_dim, **factory) if same else None
        self.in_proj_bias = empty_parameter(3 * embed_dim, **factory) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, **factory)
        self.bias_k = empty_parameter(1, 1, embed_dim, **factory) if add_bias_kv else None
        self.bias_v = empty_parameter(1, 1, embed_dim, **factory) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        transposes = self.batch_first and query.ndim == 3
        if transposes:
            query, key, value = _length_first(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(0, 1) if transposes else output, weights


def _length_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Transpose (N, T, D) to (T, N, D). Arguments that are one object stay one object: see `in_projection`."""
    q = query.transpose(0, 1)
    k = q if key is query else key.transpose(0, 1)
    return q, k, k if value is key else value.transpose(0, 1)

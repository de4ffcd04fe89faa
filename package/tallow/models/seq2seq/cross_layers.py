"""The parts of layers of encoders and decoders that fairseq designed: those of Whisper, BART and Marian.

Letters: B texts, T positions, A sources (B is a multiple of A), S positions of a source, D width, H heads, K head
width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.nn import functional as F
from tallow.nn.attention import causal_attention, cross_attention, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm


class CrossKeys(NamedTuple):
    """The keys and values of sources for one layer of a decoder, computed once for all tokens.

    Shapes:  (A, H, S, K)
    """

    keys: Tensor
    values: Tensor


def select_sources(layers: Sequence[CrossKeys], rows: Sequence[int]) -> list[CrossKeys]:
    """Return each layer's keys and values of these sources, in this order; a single source is that of all rows."""
    if layers[0].keys.shape[0] == 1:
        return list(layers)
    index = list(rows)
    return [CrossKeys(layer.keys[index], layer.values[index]) for layer in layers]


class ProjectedAttention(Module):
    """The projections of attention."""

    def __init__(
        self, width: int, heads: int, dropout_p: float, device: Any, dtype: Any, *, key_bias: bool = True
    ) -> None:
        super().__init__()
        self.num_heads = heads
        self.k_proj = Linear(width, width, bias=key_bias, device=device, dtype=dtype)
        self.v_proj = Linear(width, width, device=device, dtype=dtype)
        self.q_proj = Linear(width, width, device=device, dtype=dtype)
        self.out_proj = Linear(width, width, device=device, dtype=dtype)
        self.dropout_p = dropout_p

    @property
    def dropout(self) -> float:
        """The dropout probability in effect; 0 in evaluation mode."""
        return self.dropout_p if self.training else 0.0

    def query(self, x_BTD: Tensor) -> Tensor:
        """Return queries (B, H, T, K)."""
        return split_heads(self.q_proj(x_BTD), self.num_heads)

    def keys_and_values(self, x_BTD: Tensor) -> CrossKeys:
        """Return keys and values (B, H, T, K)."""
        return CrossKeys(*(split_heads(project(x_BTD), self.num_heads) for project in (self.k_proj, self.v_proj)))


class EncoderAttention(ProjectedAttention):
    """Self-attention of the encoder: every position sees all others, or those that the mask (A, 1, 1, S) allows."""

    def forward(self, x_ASD: Tensor, mask: Tensor | None = None) -> Tensor:
        keys, values = self.keys_and_values(x_ASD)
        mixed_AHSK = F.scaled_dot_product_attention(self.query(x_ASD), keys, values, mask, self.dropout)
        return self.out_proj(merge_heads(mixed_AHSK))


class CausalAttention(ProjectedAttention):
    """Causal self-attention of the decoder."""

    def forward(self, x_BTD: Tensor, layer: int, cache: KVCache | None) -> Tensor:
        keys, values = self.keys_and_values(x_BTD)
        lengths = masks = None
        if cache is not None:
            lengths, masks = cache.lengths(x_BTD.shape[1]), cache.masks
            keys, values = cache.append(layer, keys, values)
        query, dropout_p = self.query(x_BTD), self.dropout
        mixed_BHTK = causal_attention(query, keys, values, dropout_p=dropout_p, lengths=lengths, masks=masks)
        return self.out_proj(merge_heads(mixed_BHTK))


class CrossAttention(ProjectedAttention):
    """Attention of the decoder to the sources, or to what the mask (A, 1, 1, S) allows."""

    def forward(self, x_BTD: Tensor, source: CrossKeys, mask: Tensor | None = None) -> Tensor:
        mixed_BHTK = cross_attention(self.query(x_BTD), *source, mask, dropout_p=self.dropout)
        return self.out_proj(merge_heads(mixed_BHTK))


class CrossLayer(Module):
    """The base of encoder and decoder layers: the norms, and the feed-forward part."""

    def __init__(self, config: Any, inner: int, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn_layer_norm = LayerNorm(config.d_model, **factory)
        self.fc1 = Linear(config.d_model, inner, **factory)
        self.fc2 = Linear(inner, config.d_model, **factory)
        self.final_layer_norm = LayerNorm(config.d_model, **factory)
        self.activation = activation_named(config.activation_function)
        self.dropout = Dropout(config.dropout)
        self.activation_dropout = Dropout(config.activation_dropout)

    def inner(self, x_BTD: Tensor) -> Tensor:
        """Return fc2(activation(fc1(x))), with dropout."""
        return self.dropout(self.fc2(self.activation_dropout(self.activation(self.fc1(x_BTD)))))

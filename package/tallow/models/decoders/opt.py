"""OPT: a decoder-only transformer with learned positions, layer norms and ReLU.

Loads Hugging Face folders of `OPTForCausalLM`, `OPTModel`, and the heads for texts and answers.

Letters: B batch, T query positions, S key positions, D width, H heads, K head width.

Source:  Zhang et al. 2022, arXiv:2205.01068; names as in transformers' `modeling_opt.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallow import devices
from tallow.core.creation import arange
from tallow.core.tensor import Tensor, wrap
from tallow.models.activations import activation_named
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.decoders.decoder import DecoderConfig, DecoderModel
from tallow.models.pretrained import check_length
from tallow.nn.attention import causal_attention, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm

OFFSET = 2  # rows before that of the first position


@dataclass(frozen=True, kw_only=True)
class OPTConfig(DecoderConfig):
    """The sizes of an OPT, named as in Hugging Face's `config.json`, which `from_json` reads; as DecoderConfig.

    Attributes:
        word_embed_proj_dim: the width of embeddings, which matrices convert to D and back; None means D.
        do_layer_norm_before: whether norms are before the parts of a layer, or after what they are added to.
        remove_final_layer_norm: whether there is no norm after the layers; `_remove_final_layer_norm` in the file.
        enable_bias: whether the matrices of layers have biases.
        layer_norm_elementwise_affine: whether norms have weights.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    ffn_dim: int = 3072
    max_position_embeddings: int = 2048
    word_embed_proj_dim: int | None = None
    do_layer_norm_before: bool = True
    remove_final_layer_norm: bool = False
    activation_function: str = "relu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    enable_bias: bool = True
    layer_norm_elementwise_affine: bool = True
    bos_token_id: int = 2
    pad_token_id: int | None = 1
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("opt",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**DecoderConfig.computed, "layerdrop": (0.0,)}
    neutral: ClassVar[frozenset[str]] = frozenset({"init_std", "activation_dropout"})  # no class reads the latter

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation_function)
        self.check_heads("hidden_size", "num_attention_heads")

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        if "_remove_final_layer_norm" in entries:
            entries["remove_final_layer_norm"] = entries.pop("_remove_final_layer_norm")
        super().prepare(entries)

    @property
    def embedding_width(self) -> int:
        """The width of embeddings."""
        return self.word_embed_proj_dim or self.hidden_size


class OPTAttention(Module):
    """Causal self-attention."""

    def __init__(self, config: OPTConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.num_heads = config.num_attention_heads
        self.dropout_p = config.attention_dropout
        width = config.hidden_size
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            self.add_module(name, Linear(width, width, config.enable_bias, device, dtype))

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        q_BHTK = split_heads(self.q_proj(x_BTD), self.num_heads)
        k_BHSK, v_BHSK = (
            split_heads(self.k_proj(x_BTD), self.num_heads),
            split_heads(self.v_proj(x_BTD), self.num_heads),
        )
        lengths = masks = None
        if cache is not None:
            lengths, masks = cache.lengths(x_BTD.shape[1]), cache.masks
            k_BHSK, v_BHSK = cache.append(self.layer, k_BHSK, v_BHSK)
        dropout = self.dropout_p if self.training else 0.0
        mixed_BHTK = causal_attention(q_BHTK, k_BHSK, v_BHSK, dropout_p=dropout, lengths=lengths, masks=masks)
        return self.out_proj(merge_heads(mixed_BHTK))


class OPTDecoderLayer(Module):
    """Attention and feed-forward, each added to its input, with a norm before each or after each sum."""

    def __init__(self, config: OPTConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.norm_before = config.do_layer_norm_before
        self.self_attn = OPTAttention(config, layer, device, dtype)
        self.self_attn_layer_norm = norm_of(config, device, dtype)
        self.fc1 = Linear(config.hidden_size, config.ffn_dim, config.enable_bias, device, dtype)
        self.fc2 = Linear(config.ffn_dim, config.hidden_size, config.enable_bias, device, dtype)
        self.final_layer_norm = norm_of(config, device, dtype)
        self.activation = activation_named(config.activation_function)
        self.dropout = Dropout(config.dropout)

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        if self.norm_before:
            x_BTD = x_BTD + self.dropout(self.self_attn(self.self_attn_layer_norm(x_BTD), cache))
            return x_BTD + self._feed_forward(self.final_layer_norm(x_BTD))
        x_BTD = self.self_attn_layer_norm(x_BTD + self.dropout(self.self_attn(x_BTD, cache)))
        return self.final_layer_norm(x_BTD + self._feed_forward(x_BTD))

    def _feed_forward(self, x_BTD: Tensor) -> Tensor:
        return self.dropout(self.fc2(self.activation(self.fc1(x_BTD))))


def norm_of(config: OPTConfig, device: Any, dtype: Any) -> LayerNorm:
    """Return a norm of D elements."""
    affine = config.layer_norm_elementwise_affine
    return LayerNorm(config.hidden_size, elementwise_affine=affine, device=device, dtype=dtype)


class OPTDecoder(Module):
    """The embeddings and layers of the model."""

    def __init__(self, config: OPTConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, embedded = config.hidden_size, config.embedding_width
        self.embed_tokens = Embedding(config.vocab_size, embedded, device=device, dtype=dtype)
        self.embed_positions = Embedding(config.max_position_embeddings + OFFSET, width, device=device, dtype=dtype)
        self.project_out = None if embedded == width else Linear(width, embedded, False, device, dtype)
        self.project_in = None if embedded == width else Linear(embedded, width, False, device, dtype)
        has_norm = config.do_layer_norm_before and not config.remove_final_layer_norm
        self.final_layer_norm = norm_of(config, device, dtype) if has_norm else None
        self.layers = ModuleList(OPTDecoderLayer(config, i, device, dtype) for i in range(config.num_hidden_layers))

    def forward(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD = self.embed_tokens(tokens_BT)
        x_BTD = x_BTD if self.project_in is None else self.project_in(x_BTD)
        x_BTD = x_BTD + self._positions(tokens_BT, cache)
        for layer in self.layers:
            x_BTD = layer(x_BTD, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        x_BTD = x_BTD if self.final_layer_norm is None else self.final_layer_norm(x_BTD)
        return x_BTD if self.project_out is None else self.project_out(x_BTD)

    def _positions(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        """Return the embeddings of positions, which begin at 0 in the text of each row."""
        start = 0 if cache is None else cache.length
        end = start + tokens_BT.shape[1]
        check_length(end, self.embed_positions.num_embeddings - OFFSET)
        if cache is None or cache.padding is None:
            return self.embed_positions(arange(start + OFFSET, end + OFFSET, device=tokens_BT.device))
        positions_BT = np.maximum(np.arange(start, end) - cache.padding[:, None], 0) + OFFSET
        return self.embed_positions(wrap(devices.move(positions_BT, tokens_BT.device)))


class OPTModel(DecoderModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = OPTConfig
    base_model_prefix = "model"

    def __init__(self, config: OPTConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.decoder = OPTDecoder(config, device, dtype)
        self.reset_parameters()

    @property
    def token_embedding(self) -> Embedding:
        return self.decoder.embed_tokens

    @property
    def context_length(self) -> int:
        return self.config.max_position_embeddings

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        return self.decoder(tokens_BT, cache)


class OPT(CausalLM):
    """A language model; Hugging Face's `OPTForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = OPTModel

    @property
    def cache_shape(self) -> CacheShape:
        config = self.config
        heads = config.num_attention_heads
        return CacheShape(config.num_hidden_layers, heads, config.hidden_size // heads)

"""Falcon: a decoder-only transformer in which attention and feed-forward read the same input in parallel.

Loads Hugging Face folders of `FalconForCausalLM` and its other heads, of all designs: one key/value head for all query
heads (7B), groups of heads (40B, 180B), and one key/value head per query head, with linear biases in place of rotary
positions (RW).

Letters: B batch, T query positions, S key positions, D width, H query heads, G key/value heads, K head width,
V vocabulary.

Source:  Almazrouei et al. 2023, arXiv:2311.16867; the linear biases are Press et al. 2021, arXiv:2108.12409; names as
         in transformers' `modeling_falcon.py`
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.creation import arange, from_numpy
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.config import rename, rope_entries, whole_heads
from tallow.models.decoders.decoder import DecoderConfig, DecoderModel
from tallow.nn import functional as F
from tallow.nn.attention import causal_attention, merge_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.rope_scaling import frequencies, longest_text, unscaled_length
from tallow.nn.rotary import RotaryEmbedding
from tallow.tape.modes import is_exporting

where = PUBLIC["tl"]["where"]


@dataclass(frozen=True, kw_only=True)
class FalconConfig(DecoderConfig):
    """The sizes of a Falcon, named as in Hugging Face's `config.json`, which `from_json` reads; as DecoderConfig.

    Attributes:
        num_kv_heads: G in the new design; None means one for each query head.
        num_ln_in_parallel_attn: norms before attention and feed-forward, 1 for both or 2; None: 2 in the new design.
        alibi: use linear biases in place of rotary positions.
        new_decoder_architecture: the new design: groups of heads, always in parallel.
        multi_query: one key/value head, except in the new design.
        parallel_attn: attention and feed-forward read the same input.
        ffn_hidden_size: F; None means 4 D.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_kv_heads: int | None = None
    num_ln_in_parallel_attn: int | None = None
    layer_norm_epsilon: float = 1e-5
    alibi: bool = False
    new_decoder_architecture: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    bias: bool = False
    max_position_embeddings: int = 2048
    rope_theta: float = 10000.0
    rope_scaling: Mapping[str, Any] | None = None
    ffn_hidden_size: int | None = None
    activation: str = "gelu"
    tie_word_embeddings: bool = True
    bos_token_id: int = 11
    eos_token_id: tuple[int, ...] = (11,)

    model_types: ClassVar[tuple[str, ...]] = ("falcon", "RefinedWeb", "RefinedWebModel")
    computed: ClassVar = {
        **DecoderConfig.computed,
        **dict.fromkeys(("hidden_dropout", "attention_dropout"), (0.0,)),
        "partial_rotary_factor": (1.0,),
    }
    neutral: ClassVar = frozenset({"apply_residual_connection_post_layernorm"})

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation)
        self.check_heads("hidden_size", "num_attention_heads")
        if self.num_attention_heads % self.kv_heads:
            raise ArgumentError(
                f"FalconConfig: {self.kv_heads} key/value heads do not divide {self.num_attention_heads}"
            )
        self.require("num_ln_in_parallel_attn", "1, 2 or None", lambda norms: norms in (1, 2, None))
        if self.new_decoder_architecture:
            self.require("parallel_attn", "True in the new design", bool)
        elif self.parallel_attn:
            self.require("num_ln_in_parallel_attn", "1 or None, except in the new design", lambda norms: norms != 2)
        if not (self.new_decoder_architecture or self.multi_query):
            heads = self.num_attention_heads
            self.require("num_kv_heads", f"{heads} or None, except in the new design", lambda kv: kv in (heads, None))
        if not self.alibi:
            frequencies(self.head_width, self.rope_theta, self.rope_scaling, self.max_position_embeddings)

    @property
    def head_width(self) -> int:
        """K"""
        return self.hidden_size // self.num_attention_heads

    @property
    def kv_heads(self) -> int:
        """G"""
        if self.multi_query and not self.new_decoder_architecture:
            return 1
        return self.num_kv_heads or self.num_attention_heads

    @property
    def has_two_norms(self) -> bool:
        """True if attention and feed-forward, in parallel, have separate norms."""
        return self.new_decoder_architecture and self.num_ln_in_parallel_attn != 1

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        older = {"n_embed": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
        rename(entries, {**older, "n_head_kv": "num_kv_heads"})
        rope_entries(entries)
        whole_heads(entries)
        super().prepare(entries)


class FalconAttention(Module):
    """Causal self-attention; one matrix computes queries, keys and values, ordered by groups of heads."""

    def __init__(self, config: FalconConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.groups = config.kv_heads
        self.queries_of_group = config.num_attention_heads // config.kv_heads
        heads = self.groups * (self.queries_of_group + 2)
        self.query_key_value = Linear(config.hidden_size, heads * config.head_width, config.bias, device, dtype)
        self.dense = Linear(config.hidden_size, config.hidden_size, config.bias, device, dtype)

    def forward(self, x_BTD: Tensor, positions: RotaryEmbedding | Alibi, cache: KVCache | None) -> Tensor:
        batch, length, _ = x_BTD.shape
        # Each group holds its query heads, then its key head and its value head.
        fused = self.query_key_value(x_BTD).reshape(batch, length, self.groups, self.queries_of_group + 2, -1)
        fused_BGnTK = fused.permute(0, 2, 3, 1, 4)
        q_BHTK = fused_BGnTK[:, :, :-2].flatten(1, 2)
        k_BGSK, v_BGSK = fused_BGnTK[:, :, -2], fused_BGnTK[:, :, -1]
        start = 0 if cache is None else cache.length
        padding = None if cache is None else cache.padding
        if isinstance(positions, RotaryEmbedding):
            q_BHTK, k_BGSK = positions(q_BHTK, start, padding), positions(k_BGSK, start, padding)
        lengths, masks = None, {}
        if cache is not None:
            lengths, masks = cache.lengths(length), cache.masks
            k_BGSK, v_BGSK = cache.append(self.layer, k_BGSK, v_BGSK)
        if isinstance(positions, RotaryEmbedding):
            return self.dense(merge_heads(causal_attention(q_BHTK, k_BGSK, v_BGSK, lengths=lengths, masks=masks)))
        if length not in masks:
            masks[length] = positions(start, k_BGSK, lengths)
        bias_BHTS = masks[length]
        grouped = self.queries_of_group > 1
        return self.dense(
            merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BGSK, v_BGSK, bias_BHTS, enable_gqa=grouped))
        )


class Alibi(Module):
    """Biases that lower scores linearly with the distance, with a slope for each head.

    They are rounded to bfloat16, as in training.
    """

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.slopes = _rounded(alibi_slopes(heads))
        self.head_width = head_width

    def forward(self, start: int, k_BGSK: Tensor, lengths: npt.NDArray[np.int64] | None = None) -> Tensor:
        """Return the biases to add to the scores of the queries from `start` on; -inf where a query sees no key.

        Args:    lengths: as in causal_attention
        Shapes:  -> (1, H, T, S), or (B, H, T, S) with lengths
        """
        keys = k_BGSK.shape[2]
        if is_exporting() and lengths is None:
            return self._computed(start, keys, k_BGSK)
        padding_B1 = np.zeros((1, 1), np.int64) if lengths is None else keys - lengths[:, None]
        positions_BS = np.arange(keys) - padding_B1  # the text of each row begins at 0
        seen_BTS = np.tri(keys - start, keys, start, dtype=np.bool_) & (positions_BS >= 0)[:, None]
        places_B1S = np.maximum(positions_BS, 0)[:, None].astype(np.float32)
        biases_BHS = _rounded(self.slopes[:, None] * _rounded(places_B1S))
        scaled_BHS = biases_BHS / np.float32(math.sqrt(self.head_width))
        masked_BHTS = np.where(seen_BTS[:, None], scaled_BHS[:, :, None], np.float32(-np.inf))
        return wrap(devices.move(masked_BHTS, k_BGSK.device)).to(k_BGSK.dtype)

    def _computed(self, start: int, keys: int, like: Tensor) -> Tensor:
        """Return what `forward` returns, computed by ops, for an exported graph: it has to know no length."""
        places_S = arange(keys, device=like.device)
        slopes_H1 = from_numpy(self.slopes).to(like.device)[:, None]
        biases_HS = (slopes_H1 * places_S.bfloat16().float()).bfloat16().float() / math.sqrt(self.head_width)
        seen_TS = places_S <= arange(start, keys, device=like.device)[:, None]
        return where(seen_TS, biases_HS[:, None], -math.inf)[None].to(like.dtype)


def alibi_slopes(heads: int) -> npt.NDArray[np.float32]:
    """Return the slope of each head, (H,).

    For head i of n, a power of two, it is 2^(-8 i / n). For other n: the slopes for the next smaller power of two, then
    every other slope for the next larger one.

    Source:  arXiv:2108.12409, section 3
    """
    power = 1 << (heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-4.0 * np.arange(1, 2 * (heads - power) + 1, 2) / power)
    return np.concatenate([slopes, between]).astype(np.float32)


def _rounded(array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return an array rounded to bfloat16, as float32."""
    return dtypes.widen(dtypes.cast(array, dtypes.bfloat16))


class FalconMLP(Module):
    """dense_4h_to_h(activation(dense_h_to_4h(x)))"""

    def __init__(self, config: FalconConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, hidden = config.hidden_size, config.ffn_hidden_size or 4 * config.hidden_size
        self.dense_h_to_4h = Linear(width, hidden, config.bias, device, dtype)
        self.dense_4h_to_h = Linear(hidden, width, config.bias, device, dtype)
        self.activation = activation_named(config.activation)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.dense_4h_to_h(self.activation(self.dense_h_to_4h(x_BTD)))


class FalconDecoderLayer(Module):
    """x + attention(norm(x)) + mlp(norm(x)), or the two in sequence."""

    def __init__(self, config: FalconConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()

        def norm() -> LayerNorm:
            return LayerNorm(config.hidden_size, config.layer_norm_epsilon, device=device, dtype=dtype)

        self.parallel = config.parallel_attn or config.new_decoder_architecture
        self.self_attention = FalconAttention(config, layer, device, dtype)
        self.mlp = FalconMLP(config, device, dtype)
        self.has_two_norms = config.has_two_norms
        if config.has_two_norms:
            self.ln_attn, self.ln_mlp = norm(), norm()
        else:
            self.input_layernorm = norm()
        if not self.parallel:
            self.post_attention_layernorm = norm()

    def forward(self, x_BTD: Tensor, positions: RotaryEmbedding | Alibi, cache: KVCache | None) -> Tensor:
        if self.has_two_norms:
            return x_BTD + self.mlp(self.ln_mlp(x_BTD)) + self.self_attention(self.ln_attn(x_BTD), positions, cache)
        normed_BTD = self.input_layernorm(x_BTD)
        attended_BTD = self.self_attention(normed_BTD, positions, cache)
        if self.parallel:
            return x_BTD + self.mlp(normed_BTD) + attended_BTD
        x_BTD = x_BTD + attended_BTD
        return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))


class FalconModel(DecoderModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).

    Args:    as DecoderModel
    """

    config_class = FalconConfig
    base_model_prefix = "transformer"

    def __init__(self, config: FalconConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.word_embeddings = Embedding(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self.h = ModuleList(FalconDecoderLayer(config, i, device, dtype) for i in range(config.num_hidden_layers))
        self.ln_f = LayerNorm(config.hidden_size, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.positions: RotaryEmbedding | Alibi = (
            Alibi(config.num_attention_heads, config.head_width)
            if config.alibi
            else RotaryEmbedding(
                config.head_width,
                config.rope_theta,
                scaling=config.rope_scaling,
                context=config.max_position_embeddings,
            )
        )
        self.reset_parameters()

    @property
    def token_embedding(self) -> Embedding:
        return self.word_embeddings

    @property
    def context_length(self) -> int:
        return longest_text(self.config.rope_scaling, self.config.max_position_embeddings)

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD = self.word_embeddings(tokens_BT)
        for layer in self.h:
            x_BTD = layer(x_BTD, self.positions, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.ln_f(x_BTD)


class Falcon(CausalLM):
    """A language model; Hugging Face's `FalconForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = FalconModel

    @property
    def prefill_chunk(self) -> int | None:
        # The rotary angles of all keys depend on the length of the whole prompt, so it is not divided.
        length = unscaled_length(self.config.rope_scaling, self.config.max_position_embeddings)
        return super().prefill_chunk if length is None else None

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(self.config.num_hidden_layers, self.config.kv_heads, self.config.head_width)

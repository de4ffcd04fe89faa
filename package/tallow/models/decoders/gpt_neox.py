"""GPT-NeoX and Pythia: attention and feed-forward in parallel after a layer norm each, biases, and a part of each head
that rotates.

Loads Hugging Face folders of `GPTNeoXForCausalLM`, `GPTNeoXModel`, and the heads for texts, tokens and answers.

Letters: B batch, T query positions, D width, H heads, K head width.

Source:  Black et al. 2022, arXiv:2204.06745; Biderman et al. 2023, arXiv:2304.01373; names as in transformers'
         `modeling_gpt_neox.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.config import rename
from tallow.models.decoders.decoder import DecoderModel
from tallow.models.decoders.layers import PlainMLP
from tallow.models.decoders.llama import LlamaAttention, LlamaConfig
from tallow.models.decoders.partial_rotary import PartialRotaryConfig
from tallow.nn.attention import split_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.rope_scaling import longest_text, unscaled_length
from tallow.nn.rotary import RotaryEmbedding


@dataclass(frozen=True, kw_only=True)
class GPTNeoXConfig(PartialRotaryConfig):
    """The sizes of a GPT-NeoX, as PartialRotaryConfig.

    Attributes:
        hidden_dropout: the dropout probability of embeddings, and of what attention and feed-forward add.
        use_parallel_residual: attention and feed-forward are in parallel.
    """

    hidden_act: str = "gelu"
    partial_rotary_factor: float = 0.25
    layer_norm_eps: float = 1e-5
    attention_bias: bool = True
    hidden_dropout: float = 0.0
    use_parallel_residual: bool = True
    bos_token_id: int = 0

    model_types: ClassVar[tuple[str, ...]] = ("gpt_neox",)
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {
        *("num_key_value_heads", "mlp_bias", "rms_norm_eps", "head_dim")
    }
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {"is_decoder": (False, True)}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        rename(entries, {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"})
        super().prepare(entries)

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name.replace("embed_out.", "lm_head."): tensor for name, tensor in state.items()}

    @property
    def feed_forward_bias(self) -> bool:
        return True

    @property
    def kv_heads(self) -> int:
        """The number of key heads, one for each query head."""
        return self.num_attention_heads

    @property
    def norm_eps(self) -> float:
        return self.layer_norm_eps


class GPTNeoXAttention(LlamaAttention):
    """Llama's attention with one matrix for queries, keys and values, ordered by heads."""

    output_name = "dense"

    def add_projections(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        self.query_key_value = Linear(config.hidden_size, 3 * config.hidden_size, config.input_bias, device, dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BHTK, v_BHTK = split_heads(self.query_key_value(x_BTD), self.num_heads).chunk(3, -1)
        return q_BHTK, k_BHTK, v_BHTK


class GPTNeoXMLP(PlainMLP):
    """dense_4h_to_h(activation(dense_h_to_4h(x)))"""

    names = ("dense_h_to_4h", "dense_4h_to_h")


class GPTNeoXLayer(Module):
    """x + attention(norm(x)) + mlp(norm(x)) with two norms, or the two in sequence."""

    def __init__(self, config: GPTNeoXConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.is_parallel = config.use_parallel_residual
        self.input_layernorm = LayerNorm(config.hidden_size, config.norm_eps, device=device, dtype=dtype)
        self.post_attention_layernorm = LayerNorm(config.hidden_size, config.norm_eps, device=device, dtype=dtype)
        self.attention = GPTNeoXAttention(config, layer, device, dtype)
        self.mlp = GPTNeoXMLP(config, device, dtype)
        self.dropout = Dropout(config.hidden_dropout)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        attended_BTD = x_BTD + self.dropout(self.attention(self.input_layernorm(x_BTD), rotary, cache))
        base_BTD = x_BTD if self.is_parallel else attended_BTD
        return attended_BTD + self.dropout(self.mlp(self.post_attention_layernorm(base_BTD)))


class GPTNeoXModel(DecoderModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = GPTNeoXConfig
    base_model_prefix = "gpt_neox"

    def __init__(self, config: GPTNeoXConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embed_in = Embedding(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self.emb_dropout = Dropout(config.hidden_dropout)
        self.layers = ModuleList(GPTNeoXLayer(config, i, device, dtype) for i in range(config.num_hidden_layers))
        self.final_layer_norm = LayerNorm(config.hidden_size, config.norm_eps, device=device, dtype=dtype)
        self.rotary_emb = RotaryEmbedding(
            config.rotary_width,
            config.rope_theta,
            scaling=config.rope_scaling,
            context=config.max_position_embeddings,
        )
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name.endswith((".attention.bias", ".attention.masked_bias"))

    @property
    def token_embedding(self) -> Embedding:
        return self.embed_in

    @property
    def context_length(self) -> int:
        return longest_text(self.config.rope_scaling, self.config.max_position_embeddings)

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD = self.emb_dropout(self.embed_in(tokens_BT))
        for layer in self.layers:
            x_BTD = layer(x_BTD, self.rotary_emb, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.final_layer_norm(x_BTD)


class GPTNeoX(CausalLM):
    """A language model; Hugging Face's `GPTNeoXForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = GPTNeoXModel

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name.endswith((".attention.bias", ".attention.masked_bias"))

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(self.config.num_hidden_layers, self.config.num_attention_heads, self.config.head_width)

    @property
    def prefill_chunk(self) -> int | None:
        # The rotary angles of all keys depend on the length of the whole prompt, so it is not divided.
        length = unscaled_length(self.config.rope_scaling, self.config.max_position_embeddings)
        return super().prefill_chunk if length is None else None

"""Qwen2 and Qwen3: Llama's transformer, with biases on queries, keys and values, or with norms on queries and keys.

Loads Hugging Face folders of `Qwen2ForCausalLM`, `Qwen2Model`, and the heads for texts, tokens and answers, and the
same of Qwen3.

Source:  Yang et al. 2024, arXiv:2407.10671; Yang et al. 2025, arXiv:2505.09388; names as in transformers'
         `modeling_qwen2.py` and `modeling_qwen3.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.fused.eligibility import Kind, Pattern
from tallow.models.config import Count
from tallow.models.decoders.layer_types import LayerTypesConfig
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.nn.normalization import RMSNorm


@dataclass(frozen=True, kw_only=True)
class Qwen2Config(LayerTypesConfig):
    """The sizes of a Qwen2, as LayerTypesConfig.

    Attributes:
        max_window_layers: without layer_types, the first layer with the sliding window.
    """

    num_key_value_heads: int = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    max_window_layers: Count = 28
    attention_bias: bool = True
    eos_token_id: tuple[int, ...] = ()

    model_types: ClassVar[tuple[str, ...]] = ("qwen2",)
    unread: ClassVar[frozenset[str]] = frozenset({"attention_bias", "mlp_bias"})
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**LlamaConfig.computed, "use_mrope": (False,)}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if entries.get("use_sliding_window"):
            entries.setdefault("sliding_window", 4096)

    def slides(self, layer: int) -> bool:
        return layer >= self.max_window_layers

    def window_of(self, layer: int) -> int | None:
        return super().window_of(layer) if self.use_sliding_window else None

    @property
    def output_bias(self) -> bool:
        return False


class Qwen2Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Qwen2Config


class Qwen2(Llama):
    """A language model; Hugging Face's `Qwen2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Qwen2Model


@dataclass(frozen=True, kw_only=True)
class Qwen3Config(Qwen2Config):
    """The sizes of a Qwen3, as Qwen2Config."""

    head_dim: int | None = 128
    attention_bias: bool = False

    model_types: ClassVar[tuple[str, ...]] = ("qwen3",)
    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias"})

    @property
    def output_bias(self) -> bool:
        return self.attention_bias


class Qwen3Attention(LlamaAttention):
    """Llama's attention with a norm on every head of queries and keys."""

    head_norm_class: ClassVar[type[RMSNorm]] = RMSNorm

    def __init__(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        for name in self.head_norms:
            norm = self.head_norm_class(config.head_width, config.rms_norm_eps, device=device, dtype=dtype)
            self.add_module(name, norm)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BGTK, v_BGTK = super().heads(x_BTD)
        query_norm, key_norm = (getattr(self, name) for name in self.head_norms)
        return query_norm(q_BHTK), key_norm(k_BGTK), v_BGTK


class Qwen3DecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Qwen3's attention."""

    attention_class = Qwen3Attention


class Qwen3Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Qwen3Config
    layer_class = Qwen3DecoderLayer


class Qwen3(Llama):
    """A language model; Hugging Face's `Qwen3ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Qwen3Model
    fused_pattern = Pattern(
        {
            **Llama.fused_pattern.kinds,
            Qwen3DecoderLayer: Kind(),
            Qwen3Attention: Llama.fused_pattern.kinds[LlamaAttention],
        }
    )

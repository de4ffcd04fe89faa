"""Ministral: Mistral's transformer with a sliding window in layers that the config names; Ministral 3: Mistral's with
queries that grow with the logarithm of positions beyond the context of the first training.

Loads Hugging Face folders of `MinistralForCausalLM`, `MinistralModel`, and the heads for texts, tokens and answers, and
the same of Ministral 3.

Source:  Mistral AI 2026, arXiv:2601.08584; Nakanishi 2025, arXiv:2501.19399, for the growth of queries; names as in
         transformers' `modeling_ministral.py` and `modeling_ministral3.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.fused.eligibility import Kind, Pattern
from tallow.models.decoders.layer_types import LayerTypesConfig
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.models.decoders.mistral import MistralConfig
from tallow.nn.cache import KVCache
from tallow.nn.rope_scaling import ORIGINAL
from tallow.nn.rotary import RotaryEmbedding

# Of a config without rotary settings, which transformers' class has.
ROPE = {
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 16.0,
    ORIGINAL: 16384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale_all_dim": 1.0,
    "mscale": 1.0,
    "llama_4_scaling_beta": 0.1,
}


@dataclass(frozen=True, kw_only=True)
class MinistralConfig(MistralConfig, LayerTypesConfig):
    """The sizes of a Ministral, as MistralConfig and LayerTypesConfig. Without layer_types all layers have the sliding
    window."""

    model_types: ClassVar[tuple[str, ...]] = ("ministral",)

    def slides(self, layer: int) -> bool:
        return True


class MinistralModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = MinistralConfig


class Ministral(Llama):
    """A language model; Hugging Face's `MinistralForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = MinistralModel


@dataclass(frozen=True, kw_only=True)
class Ministral3Config(LlamaConfig):
    """The sizes of a Ministral 3, as LlamaConfig.

    Attributes:
        llama_4_scaling_beta: β of the factor of queries; 0 means none.
        original_max_position_embeddings: the context of the first training.
    """

    num_key_value_heads: int = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 262144
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1_000_000.0
    llama_4_scaling_beta: float = 0.0
    original_max_position_embeddings: int = 16384
    pad_token_id: int | None = 11

    model_types: ClassVar[tuple[str, ...]] = ("ministral3",)
    unread: ClassVar[frozenset[str]] = frozenset({"attention_bias", "mlp_bias"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        if entries.get("rope_parameters") is None and entries.get("rope_scaling") is None:
            entries["rope_parameters"] = {**ROPE}
        super().prepare(entries)
        rope = entries["rope_scaling"]
        if not isinstance(rope, dict):
            return
        rope.pop("max_position_embeddings", None)
        for name in ("llama_4_scaling_beta", ORIGINAL):
            if name in rope:
                entries[name] = rope[name]
        rope.pop("llama_4_scaling_beta", None)


class Ministral3Attention(LlamaAttention):
    """Llama's attention with queries scaled by 1 + β ln(1 + ⌊position / original context⌋)."""

    def __init__(self, config: Ministral3Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.beta, self.original = config.llama_4_scaling_beta, config.original_max_position_embeddings

    def rotated(
        self, q_BHTK: Tensor, k_BGTK: Tensor, rotary: RotaryEmbedding, start: int = 0, padding: Any = None
    ) -> tuple[Tensor, Tensor]:
        q_BHTK, k_BGTK = super().rotated(q_BHTK, k_BGTK, rotary, start, padding)
        end = start + q_BHTK.shape[2]
        if not self.beta or end <= self.original:
            return q_BHTK, k_BGTK
        positions_BT = np.arange(start, end)[None] - (0 if padding is None else padding[:, None])
        scale_BT = 1 + self.beta * np.log1p(np.maximum(positions_BT, 0) // self.original)
        scale = wrap(devices.move(scale_BT.astype(np.float32)[:, None, :, None], q_BHTK.device))
        return q_BHTK * scale.to(q_BHTK.dtype), k_BGTK


class Ministral3DecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Ministral 3's attention."""

    attention_class = Ministral3Attention


class Ministral3Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Ministral3Config
    layer_class = Ministral3DecoderLayer


class Ministral3(Llama):
    """A language model; Hugging Face's `Ministral3ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Ministral3Model
    fused_pattern = Pattern(
        {
            **Llama.fused_pattern.kinds,
            Ministral3DecoderLayer: Kind(),
            Ministral3Attention: Llama.fused_pattern.kinds[LlamaAttention],
        }
    )

    def fused_limit(self, cache: KVCache) -> str | None:
        config = self.config
        if config.llama_4_scaling_beta and config.original_max_position_embeddings < cache.capacity:
            return (
                f"queries grow after {config.original_max_position_embeddings} positions, and the cache holds "
                f"{cache.capacity}"
            )
        return super().fused_limit(cache)

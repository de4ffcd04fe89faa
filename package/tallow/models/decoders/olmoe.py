"""OLMoE: Llama's transformer with experts, and with norms on all queries and on all keys of a token.

Loads Hugging Face folders of `OlmoeForCausalLM` and `OlmoeModel`.

Source:  Muennighoff et al. 2024, arXiv:2409.02060; names as in the checkpoints of transformers' `modeling_olmoe.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.fused.eligibility import Kind, Pattern
from tallow.models.decoders.experts import ExpertsConfig, SparseDecoderLayer, SparseLlama
from tallow.models.decoders.llama import LlamaAttention, LlamaModel
from tallow.nn.attention import split_heads
from tallow.nn.normalization import RMSNorm


@dataclass(frozen=True, kw_only=True)
class OlmoeConfig(ExpertsConfig):
    """The sizes of an OLMoE, as ExpertsConfig.

    Attributes:
        clip_qkv: the largest magnitude of queries, keys and values; None means any.
    """

    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    num_experts: int = 64
    num_experts_per_tok: int = 8
    clip_qkv: float | None = None
    pad_token_id: int | None = 1
    eos_token_id: tuple[int, ...] = (50279,)

    model_types: ClassVar[tuple[str, ...]] = ("olmoe",)
    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias"})


class OlmoeAttention(LlamaAttention):
    """Llama's attention with a norm on the queries of all heads together, and one on the keys."""

    def __init__(self, config: OlmoeConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        widths = self.num_heads * config.head_width, self.num_kv_heads * config.head_width
        self.q_norm, self.k_norm = (RMSNorm(width, config.rms_norm_eps, device=device, dtype=dtype) for width in widths)
        self.bound = config.clip_qkv

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        parts = self.q_norm(self.q_proj(x_BTD)), self.k_norm(self.k_proj(x_BTD)), self.v_proj(x_BTD)
        q, k, v = parts if self.bound is None else (part.clamp(-self.bound, self.bound) for part in parts)
        return split_heads(q, self.num_heads), split_heads(k, self.num_kv_heads), split_heads(v, self.num_kv_heads)


class OlmoeDecoderLayer(SparseDecoderLayer):
    """A Llama layer with experts and OLMoE's attention."""

    attention_class = OlmoeAttention


class OlmoeModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = OlmoeConfig
    layer_class = OlmoeDecoderLayer


class Olmoe(SparseLlama):
    """A language model; Hugging Face's `OlmoeForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = OlmoeModel
    fused_pattern = Pattern(
        {
            **SparseLlama.fused_pattern.kinds,
            OlmoeAttention: Kind(settings=("layer", "window"), dropout=("dropout_p",), allowed={"bound": (None,)}),
        }
    )

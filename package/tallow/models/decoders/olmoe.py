"""OLMoE: Llama's transformer with experts, and with norms on all queries and on all keys of a token.

Loads Hugging Face folders of `OlmoeForCausalLM` and `OlmoeModel`.

Source:  Muennighoff et al. 2024, arXiv:2409.02060; names as in the checkpoints of transformers' `modeling_olmoe.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.fused.eligibility import Kind, Pattern
from tallow.models.decoders.experts import ExpertsConfig, SparseDecoderLayer, SparseLlama
from tallow.models.decoders.llama import LlamaModel
from tallow.models.decoders.olmo import Olmo2Attention, OlmoAttention


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


class OlmoeAttention(OlmoAttention, Olmo2Attention):
    """OLMo 2's attention with OLMo's bound of queries, keys and values."""


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

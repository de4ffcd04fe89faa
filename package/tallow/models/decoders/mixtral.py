"""Mixtral: Mistral's transformer with experts.

Loads Hugging Face folders of `MixtralForCausalLM` and `MixtralModel`.

Source:  Jiang et al. 2024, arXiv:2401.04088; names as in the checkpoints, of transformers' first `modeling_mixtral.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.decoders.experts import ExpertsConfig, SparseDecoderLayer, SparseLlama
from tallow.models.decoders.llama import LlamaModel


@dataclass(frozen=True, kw_only=True)
class MixtralConfig(ExpertsConfig):
    """The sizes of a Mixtral, as ExpertsConfig."""

    num_key_value_heads: int = 8
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    num_experts: int = 8
    num_experts_per_tok: int = 2
    norm_topk_prob: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("mixtral",)
    expert_names = ("w1", "w3", "w2")
    mlp_name = "block_sparse_moe"
    unread: ClassVar[frozenset[str]] = frozenset({"attention_bias", "mlp_bias", "norm_topk_prob"})
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**ExpertsConfig.computed, "router_jitter_noise": (0.0,)}


class MixtralDecoderLayer(SparseDecoderLayer):
    """A Llama layer with experts, under Mixtral's name for them."""

    mlp_name = MixtralConfig.mlp_name


class MixtralModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = MixtralConfig
    layer_class = MixtralDecoderLayer


class Mixtral(SparseLlama):
    """A language model; Hugging Face's `MixtralForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = MixtralModel

"""Qwen2-MoE and Qwen3-MoE: Qwen2 and Qwen3 with experts; in Qwen2-MoE all tokens use one more, the shared expert.

Loads Hugging Face folders of `Qwen2MoeForCausalLM`, `Qwen2MoeModel`, `Qwen3MoeForCausalLM` and `Qwen3MoeModel`.

Source:  Yang et al. 2024, arXiv:2407.10671; Yang et al. 2025, arXiv:2505.09388; names as in the checkpoints of
         transformers' `modeling_qwen2_moe.py` and `modeling_qwen3_moe.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.config import rename
from tallow.models.decoders.experts import Gate, SparseDecoderLayer, SparseLlama, SparseMLP, SparseStepConfig
from tallow.models.decoders.llama import LlamaMLP, LlamaModel
from tallow.models.decoders.qwen import Qwen2Config, Qwen3Attention
from tallow.nn import functional as F


@dataclass(frozen=True, kw_only=True)
class Qwen3MoeConfig(Qwen2Config, SparseStepConfig):
    """The sizes of a Qwen3-MoE, as Qwen2Config and SparseStepConfig."""

    moe_intermediate_size: int = 768
    num_key_value_heads: int = 4
    num_experts: int = 128
    num_experts_per_tok: int = 8
    attention_bias: bool = False

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_moe",)
    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias", "max_window_layers", "layer_types"})
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**Qwen2Config.computed, **SparseStepConfig.computed}
    neutral: ClassVar[frozenset[str]] = SparseStepConfig.neutral

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries["sliding_window"] = entries.get("sliding_window") or None  # 0 stands for none

    def slides(self, layer: int) -> bool:
        return True

    @property
    def output_bias(self) -> bool:
        return self.attention_bias


class Qwen3MoeDecoderLayer(SparseDecoderLayer):
    """A Llama layer with experts and Qwen3's attention."""

    attention_class = Qwen3Attention


class Qwen3MoeModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Qwen3MoeConfig
    layer_class = Qwen3MoeDecoderLayer


class Qwen3Moe(SparseLlama):
    """A language model; Hugging Face's `Qwen3MoeForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Qwen3MoeModel


@dataclass(frozen=True, kw_only=True)
class Qwen2MoeConfig(Qwen3MoeConfig):
    """The sizes of a Qwen2-MoE, as Qwen3MoeConfig.

    Attributes:
        shared_expert_intermediate_size: the number of hidden features of the shared expert.
    """

    shared_expert_intermediate_size: int = 5632
    moe_intermediate_size: int = 1408
    num_key_value_heads: int = 16
    num_experts: int = 60
    num_experts_per_tok: int = 4
    attention_bias: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("qwen2_moe",)
    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias", "attention_bias"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        rename(entries, {"qkv_bias": "attention_bias"})

    def slides(self, layer: int) -> bool:
        return layer % 2 == 0 and layer < self.max_window_layers

    @property
    def output_bias(self) -> bool:
        return False


class Qwen2MoeMLP(SparseMLP):
    """Experts, and the shared expert with a weight of its own for each token."""

    def __init__(self, config: Qwen2MoeConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.shared_expert = LlamaMLP(config, device, dtype, config.shared_expert_intermediate_size)
        self.shared_expert_gate = Gate(config.hidden_size, 1, device, dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return super().forward(x_BTD) + F.sigmoid(self.shared_expert_gate(x_BTD)) * self.shared_expert(x_BTD)


class Qwen2MoeDecoderLayer(SparseDecoderLayer):
    """A Llama layer with experts, one of them shared."""

    sparse_class = Qwen2MoeMLP


class Qwen2MoeModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Qwen2MoeConfig
    layer_class = Qwen2MoeDecoderLayer


class Qwen2Moe(SparseLlama):
    """A language model; Hugging Face's `Qwen2MoeForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Qwen2MoeModel

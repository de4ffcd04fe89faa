"""Qwen3-Next: the gated delta rule in most layers, gated attention in the others, and experts, one of them shared.

Loads Hugging Face folders of `Qwen3NextForCausalLM`, `Qwen3NextModel`, and the heads for texts, tokens and answers.
Heads that predict further tokens are left out.

Source:  Qwen Team 2025, https://qwen.ai/blog?id=qwen3-next; names as in the checkpoints of transformers'
         `modeling_qwen3_next.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.models.decoders.experts import SparseStepConfig
from tallow.models.decoders.gated_delta import GatedDeltaConfig, GatedDeltaLayer, GatedDeltaNet
from tallow.models.decoders.hybrid import HybridLlama
from tallow.models.decoders.llama import LlamaModel
from tallow.models.decoders.qwen_moe import Qwen2MoeMLP
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.ops.joining import cat


@dataclass(frozen=True, kw_only=True)
class Qwen3NextConfig(GatedDeltaConfig, SparseStepConfig):
    """The sizes of a Qwen3-Next, as GatedDeltaConfig and SparseStepConfig.

    Attributes:
        shared_expert_intermediate_size: the number of hidden features of the shared expert.
    """

    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int = 512
    num_experts: int = 512
    num_experts_per_tok: int = 10
    norm_topk_prob: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_next",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**SparseStepConfig.computed, **GatedDeltaConfig.computed}


class Qwen3NextGatedDeltaNet(GatedDeltaNet):
    """The gated delta rule with two projections, whose outputs are ordered by key heads."""

    def add_projections(self, config: GatedDeltaConfig, device: Any, dtype: Any) -> None:
        features = 2 * (config.key_features + config.value_features)
        self.in_proj_qkvz = Linear(config.hidden_size, features, False, device, dtype)
        self.in_proj_ba = Linear(config.hidden_size, 2 * self.heads, False, device, dtype)

    def projected(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        each = self.heads // self.key_heads
        sizes = [self.key_width, self.key_width, each * self.value_width, each * self.value_width]
        parts = self.in_proj_qkvz(x_BTD).unflatten(-1, (self.key_heads, -1)).split(sizes, -1)
        q_BTE, k_BTE, v_BTE, gate_BTE = (part.flatten(2) for part in parts)
        beta_BTGh, step_BTGh = self.in_proj_ba(x_BTD).unflatten(-1, (self.key_heads, -1)).chunk(2, -1)
        return apply(cat, [q_BTE, k_BTE, v_BTE], -1), gate_BTE, beta_BTGh.flatten(2), step_BTGh.flatten(2)


class Qwen3NextDecoderLayer(GatedDeltaLayer):
    """A layer with experts, if the config says so."""

    delta_class = Qwen3NextGatedDeltaNet

    def new_mlp(self, config: Any, layer: int, device: Any, dtype: Any) -> Module:
        if config.has_experts(layer):
            return Qwen2MoeMLP(config, device, dtype)
        return super().new_mlp(config, layer, device, dtype)


class Qwen3NextModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Qwen3NextConfig
    layer_class = Qwen3NextDecoderLayer


class Qwen3Next(HybridLlama):
    """A language model; Hugging Face's `Qwen3NextForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Qwen3NextModel

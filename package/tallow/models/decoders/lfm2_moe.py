"""LFM2-MoE: LFM2 in which all but the first layers have experts, chosen by the sigmoid of each one's score.

Loads Hugging Face folders of `Lfm2MoeForCausalLM` and `Lfm2MoeModel`.

Source:  Liquid AI 2025, arXiv:2511.23404; names as in the checkpoints of transformers' `modeling_lfm2_moe.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.models.config import Count
from tallow.models.decoders.experts import ExpertsConfig, Router, SparseMLP
from tallow.models.decoders.lfm2 import MLP_NAMES, ConvolutionsConfig, Lfm2, Lfm2DecoderLayer, Lfm2Model
from tallow.nn import functional as F
from tallow.nn.module import Module


@dataclass(frozen=True, kw_only=True)
class Lfm2MoeConfig(ConvolutionsConfig, ExpertsConfig):
    """The sizes of an LFM2-MoE, as ConvolutionsConfig and ExpertsConfig.

    Attributes:
        moe_intermediate_size: the number of hidden features of an expert.
        num_dense_layers: the number of first layers without experts.
        use_expert_bias: whether a bias for each expert is added to the scores that choose experts, not to the weights.
        routed_scaling_factor: of the weights.
    """

    moe_intermediate_size: int = 1792
    num_dense_layers: Count = 2
    num_experts: int = 32
    num_experts_per_tok: int = 4
    norm_topk_prob: bool = True
    use_expert_bias: bool = True
    routed_scaling_factor: float = 1.0

    model_types: ClassVar[tuple[str, ...]] = ("lfm2_moe",)
    expert_names: ClassVar[tuple[str, ...]] = MLP_NAMES
    mlp_name: ClassVar[str] = "feed_forward"
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**ConvolutionsConfig.computed, **ExpertsConfig.computed}
    neutral: ClassVar[frozenset[str]] = ConvolutionsConfig.neutral | ExpertsConfig.neutral

    @property
    def expert_width(self) -> int:
        return self.moe_intermediate_size

    def has_experts(self, layer: int) -> bool:
        return layer >= self.num_dense_layers


class Lfm2MoeRouter(Router):
    """Chooses the experts with the largest sum of the sigmoid of their score and a bias; weights are the sigmoids."""

    def __init__(self, config: Any, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.factor = config.routed_scaling_factor

    def choose(self, scores_NE: Tensor, bias_E: Tensor | None) -> tuple[Tensor, Tensor]:
        weights_NE = F.sigmoid(scores_NE)
        _, chosen_NC = (weights_NE if bias_E is None else weights_NE + bias_E).topk(self.count)
        weights_NC = weights_NE.gather(-1, chosen_NC)
        if self.normalized:
            weights_NC = weights_NC / (weights_NC.sum(-1, keepdim=True) + 1e-6)
        return weights_NC * self.factor, chosen_NC


class Lfm2SparseMLP(SparseMLP):
    """Experts with a bias for each in the choice."""

    router_class = Lfm2MoeRouter

    def __init__(self, config: Lfm2MoeConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        if config.use_expert_bias:
            self.register_buffer("expert_bias", zeros(config.num_experts, device=device))


class Lfm2MoeDecoderLayer(Lfm2DecoderLayer):
    """An LFM2 layer with experts, except the first layers."""

    def new_mlp(self, config: Any, layer: int, device: Any, dtype: Any) -> Module:
        if config.has_experts(layer):
            return Lfm2SparseMLP(config, device, dtype)
        return super().new_mlp(config, layer, device, dtype)


class Lfm2MoeModel(Lfm2Model):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Lfm2MoeConfig
    layer_class = Lfm2MoeDecoderLayer


class Lfm2Moe(Lfm2):
    """A language model; Hugging Face's `Lfm2MoeForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Lfm2MoeModel

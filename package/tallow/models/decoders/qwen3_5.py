"""Qwen3.5 and Qwen3.6 for text, with and without experts: Qwen3-Next with four projections in the gated delta rule.

Loads Hugging Face folders of `Qwen3_5ForCausalLM`, `Qwen3_5TextModel`, `Qwen3_5MoeForCausalLM` and
`Qwen3_5MoeTextModel`; and the language model of `Qwen3_5ForConditionalGeneration` and
`Qwen3_5MoeForConditionalGeneration`, without the encoder of images. Heads that predict further tokens are left out.

Source:  Qwen Team 2026, https://qwen.ai/blog?id=qwen3.5; names as in the checkpoints of transformers'
         `modeling_qwen3_5.py` and `modeling_qwen3_5_moe.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.dtypes import Array, widen
from tallow.fused.eligibility import Kind, Pattern
from tallow.fused.weights import affine
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.state_block import GatedDeltaRule
from tallow.models.config import texts_part
from tallow.models.decoders.experts import ExpertsConfig
from tallow.models.decoders.gated_delta import (
    GatedAttention,
    GatedDeltaConfig,
    GatedDeltaLayer,
    GatedDeltaNet,
    GatedRMSNorm,
)
from tallow.models.decoders.gemma import GemmaRMSNorm
from tallow.models.decoders.hybrid import HybridLlama, kernel_rows
from tallow.models.decoders.llama import LlamaAttention, LlamaModel
from tallow.models.decoders.qwen_moe import Qwen2MoeMLP
from tallow.nn import functional as F
from tallow.nn.cache import KVCache
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.short_convolution import ShortConvolution

INNER = "model.language_model."  # where the language model lies beside an encoder of images


@dataclass(frozen=True, kw_only=True)
class Qwen3_5Config(GatedDeltaConfig):
    """The sizes of a Qwen3.5 without experts, as GatedDeltaConfig."""

    num_key_value_heads: int = 4

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_5_text", "qwen3_5")
    # The data of heads that predict further tokens, and of the kernels of other libraries.
    neutral: ClassVar[frozenset[str]] = frozenset(
        {"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype", "mlp_only_layers"}
    )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        texts_part(entries, "vision_config")
        super().prepare(entries)

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return super().separated({_outer(name): tensor for name, tensor in state.items()})


def _outer(name: str) -> str:
    return "model." + name.removeprefix(INNER) if name.startswith(INNER) else name


class Qwen3_5GatedDeltaNet(GatedDeltaNet):
    """The gated delta rule with four projections."""

    def add_projections(self, config: GatedDeltaConfig, device: Any, dtype: Any) -> None:
        width = config.hidden_size
        self.in_proj_qkv = Linear(width, config.channels, False, device, dtype)
        self.in_proj_z = Linear(width, config.value_features, False, device, dtype)
        self.in_proj_b = Linear(width, self.heads, False, device, dtype)
        self.in_proj_a = Linear(width, self.heads, False, device, dtype)

    def projected(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.in_proj_qkv(x_BTD), self.in_proj_z(x_BTD), self.in_proj_b(x_BTD), self.in_proj_a(x_BTD)


class Qwen3_5DecoderLayer(GatedDeltaLayer):
    """A layer without experts."""

    delta_class = Qwen3_5GatedDeltaNet


class Qwen3_5TextModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Qwen3_5Config
    layer_class = Qwen3_5DecoderLayer


class Qwen3_5(HybridLlama):
    """A language model; Hugging Face's `Qwen3_5ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = Qwen3_5TextModel
    fused_pattern = Pattern(
        {
            **HybridLlama.fused_pattern.kinds,
            GatedDeltaLayer: Kind(settings=("has_attention",), methods=("forward",)),
            GatedAttention: HybridLlama.fused_pattern.kinds[LlamaAttention],
            Qwen3_5GatedDeltaNet: Kind(settings=("layer", "tiled"), allowed={"activation": (F.silu,)}),
            GemmaRMSNorm: Kind(settings=("eps",), copied=True),
            GatedRMSNorm: Kind(settings=("eps",)),
            ShortConvolution: Kind(),
        }
    )

    def fused_norm(self, norm: Any) -> Array:
        scale = super().fused_norm(norm)
        return 1 + scale if isinstance(norm, GemmaRMSNorm) else scale

    def fused_mixer(self, layer: Any, cache: KVCache) -> tuple[GatedDeltaRule, Affine]:
        part = layer.linear_attn
        states = cache.layers[part.layer].states
        mixer = GatedDeltaRule(
            mixed_input=affine(part.in_proj_qkv),
            gate=affine(part.in_proj_z),
            beta=affine(part.in_proj_b),
            size=affine(part.in_proj_a),
            weight=kernel_rows(part.conv1d),
            log_rate=widen(part.A_log.array),
            size_bias=widen(part.dt_bias.array),
            norm=self.fused_norm(part.norm),
            past=states[ShortConvolution.state],
            state=states[GatedDeltaNet.state],
            tiled=part.tiled,
        )
        return mixer, affine(part.out_proj)


@dataclass(frozen=True, kw_only=True)
class Qwen3_5MoeConfig(Qwen3_5Config, ExpertsConfig):
    """The sizes of a Qwen3.5 with experts, as GatedDeltaConfig and ExpertsConfig; `intermediate_size` has no effect.

    Attributes:
        moe_intermediate_size: the number of hidden features of an expert.
        shared_expert_intermediate_size: the number of hidden features of the shared expert.
    """

    num_key_value_heads: int = 2
    intermediate_size: int = 1
    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int = 512
    num_experts: int = 256
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_5_moe_text", "qwen3_5_moe")
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**ExpertsConfig.computed, **Qwen3_5Config.computed}
    neutral: ClassVar[frozenset[str]] = ExpertsConfig.neutral | Qwen3_5Config.neutral
    unread: ClassVar[frozenset[str]] = Qwen3_5Config.unread | {"intermediate_size", "norm_topk_prob"}

    @property
    def expert_width(self) -> int:
        return self.moe_intermediate_size


class Qwen3_5MoeDecoderLayer(Qwen3_5DecoderLayer):
    """A layer with experts, one of them shared."""

    def new_mlp(self, config: Any, layer: int, device: Any, dtype: Any) -> Module:
        return Qwen2MoeMLP(config, device, dtype)


class Qwen3_5MoeTextModel(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Qwen3_5MoeConfig
    layer_class = Qwen3_5MoeDecoderLayer


class Qwen3_5Moe(Qwen3_5):
    """A language model; Hugging Face's `Qwen3_5MoeForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Qwen3_5MoeTextModel

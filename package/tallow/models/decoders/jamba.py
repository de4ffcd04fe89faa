"""Jamba: most layers have a Mamba, the others attention without positions, and some have experts.

Loads Hugging Face folders of `JambaForCausalLM`, `JambaModel` and `JambaForSequenceClassification`.

Letters: B batch, T positions, D width, C channels of a Mamba, N elements of a channel's state.

Source:  Lieber et al. 2024, arXiv:2403.19887; names as in transformers' `modeling_jamba.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.config import Count
from tallow.models.decoders.experts import ExpertsConfig, SparseMLP
from tallow.models.decoders.hybrid import HybridConfig
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaMLP, LlamaModel
from tallow.models.decoders.mamba import STATE, MambaMixer
from tallow.models.decoders.mamba_part import MambaPartConfig, whole_number
from tallow.nn.cache import KVCache
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.rotary import RotaryEmbedding
from tallow.nn.state_memory import States


@dataclass(frozen=True, kw_only=True)
class JambaConfig(MambaPartConfig, HybridConfig, ExpertsConfig):
    """The sizes of a Jamba, as MambaPartConfig, HybridConfig and ExpertsConfig. With one expert, no layer has a router.

    Attributes:
        attn_layer_period, attn_layer_offset: without layer_types, the distance between layers with attention, and the
            first of them.
        expert_layer_period, expert_layer_offset: the same of layers with experts.
        mamba_dt_rank: the number of features from which the sizes of steps are computed.
    """

    num_key_value_heads: int = 8
    max_position_embeddings: int = 262144
    num_experts: int = 16
    num_experts_per_tok: int = 2
    pad_token_id: int | None = 0
    attn_layer_period: int = 8
    attn_layer_offset: Count = 4
    expert_layer_period: int = 2
    expert_layer_offset: Count = 1
    mamba_dt_rank: int = 256

    model_types: ClassVar[tuple[str, ...]] = ("jamba",)
    state_type: ClassVar[str] = "linear_attention"
    mlp_name: ClassVar[str] = "feed_forward"
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**ExpertsConfig.computed, **MambaPartConfig.computed}
    # The classes of transformers rotate nothing, whatever a file says.
    neutral: ClassVar[frozenset[str]] = ExpertsConfig.neutral | MambaPartConfig.neutral | {"num_logits_to_keep"}
    neutral |= {"mamba_inner_layernorms", "calc_logits_for_entire_prompt"}
    unread: ClassVar[frozenset[str]] = HybridConfig.unread | {"mlp_bias", "attention_bias", "norm_topk_prob"}

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        width = whole_number(entries, "hidden_size")
        if entries.get("mamba_dt_rank") in ("auto", None) and width is not None:
            entries["mamba_dt_rank"] = -(-width // 16)
        if entries.get("num_experts") == 1:
            entries["num_experts_per_tok"] = 1  # no layer has a router, whatever the file says

    def attends(self, layer: int) -> bool:
        return layer % self.attn_layer_period == self.attn_layer_offset

    def has_experts(self, layer: int) -> bool:
        return self.num_experts > 1 and layer % self.expert_layer_period == self.expert_layer_offset

    def rotates(self, layer: int) -> bool:
        return False

    @property
    def time_step_rank(self) -> int:
        """The number of features from which the sizes of steps are computed."""
        return self.mamba_dt_rank

    @property
    def states(self) -> States:
        return self.states_of({STATE: (self.channels, self.state_size)})


class JambaMixer(MambaMixer):
    """A Mamba with norms of what its steps, its writes and its reads come from."""

    def __init__(self, config: JambaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        sizes = {"eps": config.rms_norm_eps, "device": device, "dtype": dtype}
        self.dt_layernorm = RMSNorm(self.rank, **sizes)
        self.b_layernorm = RMSNorm(self.size, **sizes)
        self.c_layernorm = RMSNorm(self.size, **sizes)

    def selections(self, x_BTC: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        step_BTR, b_BTN, c_BTN = super().selections(x_BTC)
        return self.dt_layernorm(step_BTR), self.b_layernorm(b_BTN), self.c_layernorm(c_BTN)


class JambaSparseMLP(SparseMLP):
    """A mixture of experts whose router has another name."""

    router_name = "router"


class JambaDecoderLayer(Module):
    """A Mamba or attention, and a feed-forward part or experts, each after a norm and added to its input."""

    norm_class = RMSNorm
    mlp_name: ClassVar[str] = "feed_forward"

    def __init__(self, config: JambaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.has_attention = config.has_attention(layer)
        if self.has_attention:
            self.self_attn = LlamaAttention(config, layer, device, dtype)
        else:
            self.mamba = JambaMixer(config, layer, device, dtype)
        mlp = JambaSparseMLP if config.has_experts(layer) else LlamaMLP
        self.feed_forward = mlp(config, device, dtype)
        sizes = {"eps": config.rms_norm_eps, "device": device, "dtype": dtype}
        self.input_layernorm = RMSNorm(config.hidden_size, **sizes)
        self.pre_ff_layernorm = RMSNorm(config.hidden_size, **sizes)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        normed_BTD = self.input_layernorm(x_BTD)
        if self.has_attention:
            x_BTD = x_BTD + self.self_attn(normed_BTD, rotary, cache)
        else:
            x_BTD = x_BTD + self.mamba(normed_BTD, cache)
        return x_BTD + self.feed_forward(self.pre_ff_layernorm(x_BTD))


class JambaModel(LlamaModel):
    """The layers without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = JambaConfig
    layer_class = JambaDecoderLayer
    norm_name = "final_layernorm"


class Jamba(Llama):
    """A language model; Hugging Face's `JambaForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = JambaModel
    fused_pattern = None  # type: ignore[assignment]  # its layers run one by one

    @property
    def windows(self) -> tuple[int | None, ...]:
        return (None,) * self.config.num_hidden_layers

"""Falcon-H1: layers with Llama's attention and a Mamba-2 side by side, and factors of many parts.

Loads Hugging Face folders of `FalconH1ForCausalLM` and `FalconH1Model`.

Letters: B batch, T positions, D width, H heads of a Mamba, P channels of such a head, G groups, N elements of a state.

Source:  Zuo et al. 2025, arXiv:2507.22448; names as in transformers' `modeling_falcon_h1.py`
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import gated
from tallow.models.config import tupled
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaMLP, LlamaModel
from tallow.models.decoders.mamba import STATE
from tallow.models.decoders.mamba2 import GroupedRMSNorm, Mamba2Mixer, is_range, step_limit
from tallow.models.decoders.mamba_part import MambaPartConfig, whole_number
from tallow.nn import functional as F
from tallow.nn.cache import KVCache
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.rotary import RotaryEmbedding
from tallow.nn.state_memory import KeysValues, LayerShape, States
from tallow.ops.joining import cat


@dataclass(frozen=True, kw_only=True)
class FalconH1Config(MambaPartConfig):
    """The sizes of a Falcon-H1, as MambaPartConfig.

    Attributes:
        mamba_d_ssm: the number of channels of a Mamba.
        mamba_n_heads: H.
        mamba_d_head: P; None means the channels of a Mamba / H.
        mamba_n_groups: G.
        mamba_rms_norm: whether a norm follows the scan.
        mamba_norm_before_gate: that norm comes before the gate.
        time_step_limit: the smallest and the largest size of a step.
        projectors_bias: whether the last projection of a Mamba has a bias.
        embedding_multiplier, lm_head_multiplier, key_multiplier: factors of the embeddings, the logits and the keys.
        attention_in_multiplier, attention_out_multiplier, ssm_in_multiplier, ssm_out_multiplier: factors of the inputs
            and the outputs of attention and of a Mamba.
        mlp_multipliers: factors of the gate and of the output of a feed-forward part.
        ssm_multipliers: factors of what the first projection of a Mamba computes: the gate, the input of the scan,
            what writes and what reads its states, and the sizes of steps.
    """

    num_key_value_heads: int = 8
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 0
    mamba_d_state: int = 256
    mamba_d_ssm: int = 1024
    mamba_n_heads: int = 128
    mamba_d_head: int | None = None
    mamba_n_groups: int = 1
    mamba_rms_norm: bool = False
    mamba_norm_before_gate: bool = True
    time_step_limit: tuple[float, float] = (0.0, math.inf)
    projectors_bias: bool = False
    embedding_multiplier: float = 1.0
    lm_head_multiplier: float = 1.0
    key_multiplier: float = 1.0
    attention_in_multiplier: float = 1.0
    attention_out_multiplier: float = 1.0
    ssm_in_multiplier: float = 1.0
    ssm_out_multiplier: float = 1.0
    mlp_multipliers: tuple[float, float] = (1.0, 1.0)
    ssm_multipliers: tuple[float, float, float, float, float] = (1.0,) * 5

    model_types: ClassVar[tuple[str, ...]] = ("falcon_h1",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**LlamaConfig.computed, "mamba_use_mlp": (True,)}
    # The lengths of prompts' logits, sizes that others give too, and first weights.
    neutral: ClassVar[frozenset[str]] = MambaPartConfig.neutral | {"num_logits_to_keep", "mlp_expansion_factor"}
    neutral |= {f"time_step_{name}" for name in ("rank", "min", "max", "floor")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channels % self.mamba_n_heads or self.mamba_n_heads % self.mamba_n_groups:
            raise ArgumentError(
                f"FalconH1Config: mamba_n_heads={self.mamba_n_heads} in mamba_n_groups={self.mamba_n_groups} do not "
                f"divide {self.channels} channels, mamba_d_ssm"
            )
        width = self.channels // self.mamba_n_heads
        self.require("mamba_d_head", f"mamba_d_ssm / mamba_n_heads, {width}", lambda value: value in (None, width))
        self.require("time_step_limit", "two numbers, the smaller one first", is_range)
        self.require("mlp_multipliers", "two numbers", lambda value: _are_numbers(value, 2))
        self.require("ssm_multipliers", "five numbers", lambda value: _are_numbers(value, 5))

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        step_limit(entries)
        tupled(entries, "mlp_multipliers", "ssm_multipliers")
        if entries.get("mamba_d_head") == "auto":
            del entries["mamba_d_head"]
        width = whole_number(entries, "hidden_size")
        if "mamba_d_ssm" in entries and entries["mamba_d_ssm"] is None and width is not None:
            entries["mamba_d_ssm"] = (whole_number(entries, "mamba_expand") or cls.mamba_expand) * width

    @property
    def channels(self) -> int:
        return self.mamba_d_ssm

    @property
    def num_heads(self) -> int:
        """H"""
        return self.mamba_n_heads

    @property
    def n_groups(self) -> int:
        """G"""
        return self.mamba_n_groups

    @property
    def mixed(self) -> int:
        return self.channels + 2 * self.n_groups * self.state_size

    @property
    def layer_shapes(self) -> tuple[LayerShape, ...]:
        """The keys and values of each layer, and then the states of each layer."""
        keys = KeysValues(self.num_key_value_heads, self.head_width)
        states: States = self.states_of({STATE: (self.num_heads, self.state_size, self.channels // self.num_heads)})
        return (keys,) * self.num_hidden_layers + (states,) * self.num_hidden_layers


def _are_numbers(value: Any, count: int) -> bool:
    is_tuple = isinstance(value, tuple) and len(value) == count
    return is_tuple and all(type(each) in (int, float) and abs(each) <= sys.float_info.max for each in value)


class FalconH1Attention(LlamaAttention):
    """Llama's attention with factors of its input, its keys and its output."""

    def __init__(self, config: FalconH1Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.input_factor, self.output_factor = config.attention_in_multiplier, config.attention_out_multiplier
        self.key_factor = config.key_multiplier

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BGTK, v_BGTK = super().heads(x_BTD * self.input_factor)
        return q_BHTK, k_BGTK * self.key_factor, v_BGTK

    def project(self, mixed_BTE: Tensor) -> Tensor:
        return super().project(mixed_BTE) * self.output_factor


class RMSNormGated(GroupedRMSNorm):
    """RMSNorm(x) ⊙ silu(gate), each group of channels for itself."""

    def forward(self, input: Tensor, gate: Tensor) -> Tensor:  # type: ignore[override]
        return self.normed(input) * F.silu(gate)


class FalconH1Mixer(Mamba2Mixer):
    """A Mamba-2 with factors, and with a norm before its last projection only if the config says so."""

    def __init__(self, config: FalconH1Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, config.num_hidden_layers + layer, device, dtype)
        self.out_proj = Linear(config.channels, config.hidden_size, config.projectors_bias, device, dtype)
        self.factors = config.ssm_multipliers
        self.input_factor, self.output_factor = config.ssm_in_multiplier, config.ssm_out_multiplier

    def new_norm(self, config: FalconH1Config, device: Any, dtype: Any) -> Module | None:
        if not config.mamba_rms_norm:
            return None
        kind = RMSNormGated if config.mamba_norm_before_gate else GroupedRMSNorm
        return kind(config.channels, config.n_groups, config.layer_norm_epsilon, device, dtype)

    def projected(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        projected_BTE = self.in_proj(x_BTD * self.input_factor)
        gate, *mixed, steps = self.factors
        gate_BTC, *parts, step_BTH = projected_BTE.split([self.sizes[0], *self.parts, self.sizes[2]], -1)
        mixed_BTE = apply(cat, [part * factor for part, factor in zip(parts, mixed, strict=True)], -1)
        return gate_BTC * gate, mixed_BTE, step_BTH * steps

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        return super().forward(x_BTD, cache) * self.output_factor


class FalconH1MLP(LlamaMLP):
    """Llama's feed-forward part with factors of the gate and of the output."""

    def __init__(self, config: FalconH1Config, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.gate_factor, self.output_factor = config.mlp_multipliers

    def forward(self, x_BTD: Tensor) -> Tensor:
        gate_BTF = self.gate_proj(x_BTD) * self.gate_factor
        return self.down_proj(gated(self.activation, gate_BTF, self.up_proj(x_BTD))) * self.output_factor


class FalconH1DecoderLayer(Module):
    """Attention and a Mamba, both of one norm, and a feed-forward part."""

    norm_class = RMSNorm
    mlp_name: ClassVar[str] = "feed_forward"

    def __init__(self, config: FalconH1Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.feed_forward = FalconH1MLP(config, device, dtype)
        self.mamba = FalconH1Mixer(config, layer, device, dtype)
        self.self_attn = FalconH1Attention(config, layer, device, dtype)
        sizes = {"eps": config.rms_norm_eps, "device": device, "dtype": dtype}
        self.input_layernorm = RMSNorm(config.hidden_size, **sizes)
        self.pre_ff_layernorm = RMSNorm(config.hidden_size, **sizes)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        normed_BTD = self.input_layernorm(x_BTD)
        x_BTD = x_BTD + (self.mamba(normed_BTD, cache) + self.self_attn(normed_BTD, rotary, cache))
        return x_BTD + self.feed_forward(self.pre_ff_layernorm(x_BTD))


class FalconH1Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = FalconH1Config
    layer_class = FalconH1DecoderLayer
    norm_name = "final_layernorm"

    def embed(self, tokens_BT: Tensor) -> Tensor:
        return super().embed(tokens_BT) * self.config.embedding_multiplier


class FalconH1(Llama):
    """A language model; Hugging Face's `FalconH1ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = FalconH1Model
    fused_pattern = None  # type: ignore[assignment]  # its layers run one by one

    @property
    def windows(self) -> tuple[int | None, ...]:
        return (None,) * len(self.config.layer_shapes)

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return super().logits(hidden_BTD) * self.config.lm_head_multiplier

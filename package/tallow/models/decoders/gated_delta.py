"""Parts of decoders in which most layers have the gated delta rule, and the others gated attention.

Letters: B batch, T positions, D width, H value heads, G key heads, K key width, V value width, C channels of the
convolution.

Source:  names as in transformers' `modeling_qwen3_next.py`
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named
from tallow.models.decoders.gemma import GemmaRMSNorm
from tallow.models.decoders.hybrid import HybridConfig
from tallow.models.decoders.llama import LlamaMLP
from tallow.models.decoders.mamba import widened
from tallow.models.decoders.partial_rotary import PartialRotaryConfig
from tallow.models.decoders.qwen import Qwen3Attention
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.attention import split_heads
from tallow.nn.cache import KVCache
from tallow.nn.decayed_attention import gated_delta_rule
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.parameter import empty_parameter
from tallow.nn.rotary import RotaryEmbedding
from tallow.nn.short_convolution import ShortConvolution
from tallow.nn.state_memory import States
from tallow.tape.modes import no_grad

EPS = 1e-6  # of the lengths of queries and keys
# The positions of images, which those of text do not have.
OF_IMAGES = ("mrope_section", "mrope_interleaved")


@dataclass(frozen=True, kw_only=True)
class GatedDeltaConfig(PartialRotaryConfig, HybridConfig):
    """The sizes of a decoder with the gated delta rule, as PartialRotaryConfig and HybridConfig.

    Attributes:
        full_attention_interval: without layer_types, every layer of that many has attention.
        linear_conv_kernel_dim: the width of the convolution.
        linear_num_key_heads: G; each serves several value heads.
        linear_num_value_heads: H.
        linear_key_head_dim: K.
        linear_value_head_dim: V.
        tiled_value_heads: key head g serves the value heads g, g + G, ..., as in GGUF files, not H / G neighbours. Not
            in Hugging Face configs, where it is False.
    """

    num_attention_heads: int = 16
    num_key_value_heads: int = 2
    max_position_embeddings: int = 32768
    head_dim: int | None = 256
    partial_rotary_factor: float = 0.25
    full_attention_interval: int = 4
    linear_conv_kernel_dim: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 32
    tiled_value_heads: bool = False
    eos_token_id: tuple[int, ...] = ()

    state_type: ClassVar[str] = "linear_attention"
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {"attn_output_gate": (True,)}
    unread: ClassVar[frozenset[str]] = HybridConfig.unread | {"mlp_bias"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.linear_num_value_heads % self.linear_num_key_heads:
            raise ArgumentError(
                f"{type(self).__name__}: linear_num_key_heads={self.linear_num_key_heads} does not divide "
                f"linear_num_value_heads={self.linear_num_value_heads}"
            )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if isinstance(rope := entries["rope_scaling"], dict):
            rope = {name: value for name, value in rope.items() if name not in OF_IMAGES}
            entries["rope_scaling"] = rope or None

    def attends(self, layer: int) -> bool:
        return (layer + 1) % self.full_attention_interval == 0

    @property
    def output_bias(self) -> bool:
        return self.attention_bias

    @property
    def key_features(self) -> int:
        """G K"""
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_features(self) -> int:
        """H V"""
        return self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def channels(self) -> int:
        """The number of features of queries, keys and values together, C."""
        return 2 * self.key_features + self.value_features

    @property
    def states(self) -> States:
        matrices = self.linear_num_value_heads, self.linear_key_head_dim, self.linear_value_head_dim
        past = self.linear_conv_kernel_dim - 1, self.channels
        return States({ShortConvolution.state: past, GatedDeltaNet.state: matrices})


class GatedAttention(Qwen3Attention):
    """Qwen3's attention with a gate for each element of the output, which `q_proj` has after a head's query."""

    head_norm_class = GemmaRMSNorm
    has_gates = True

    def add_projections(self, config: Any, device: Any, dtype: Any) -> None:
        super().add_projections(config, device, dtype)
        width = 2 * self.num_heads * config.head_width
        self.q_proj = Linear(config.hidden_size, width, config.attention_bias, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        q_BHTE, k_BGTK, v_BGTK = (
            split_heads(self.q_proj(x_BTD), self.num_heads),
            split_heads(self.k_proj(x_BTD), self.num_kv_heads),
            split_heads(self.v_proj(x_BTD), self.num_kv_heads),
        )
        q_BHTK, gate_BHTK = q_BHTE.chunk(2, -1)
        mixed_BTE = self.attend(self.q_norm(q_BHTK), self.k_norm(k_BGTK), v_BGTK, rotary, cache)
        return self.project(mixed_BTE * F.sigmoid(gate_BHTK.transpose(1, 2).flatten(2)))


class GatedRMSNorm(RMSNorm):
    """RMSNorm(x) ⊙ silu(gate)"""

    def forward(self, input: Tensor, gate: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(input) * F.silu(gate)


class GatedDeltaNet(Module):
    """The gated delta rule over queries, keys and values that a short convolution mixes with those before."""

    state: ClassVar[str] = "recurrent"  # the name in a cache of the matrices (B, H, K, V)

    def __init__(self, config: GatedDeltaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.heads, self.key_heads = config.linear_num_value_heads, config.linear_num_key_heads
        self.key_width, self.value_width = config.linear_key_head_dim, config.linear_value_head_dim
        self.tiled = config.tiled_value_heads
        self.activation = activation_named(config.activation)
        self.conv1d = ShortConvolution(config.channels, config.linear_conv_kernel_dim, False, device, dtype)
        self.add_projections(config, device, dtype)
        self.dt_bias = empty_parameter(self.heads, device=device, dtype=dtype)
        self.A_log = empty_parameter(self.heads, device=device, dtype=dtype)
        self.norm = GatedRMSNorm(self.value_width, config.rms_norm_eps, device=device, dtype=dtype)
        self.out_proj = Linear(config.value_features, config.hidden_size, False, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set decays to between 0.01 and 16 times the size of the step."""
        init.ones_(self.dt_bias)
        init.uniform_(self.A_log, 0.01, 16.0)
        with no_grad():
            self.A_log.log_()

    @abstractmethod
    def add_projections(self, config: Any, device: Any, dtype: Any) -> None:
        """Add the layers that `projected` applies."""

    @abstractmethod
    def projected(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return queries, keys and values (B, T, C); the gate (B, T, H V); and what the strength of corrections and the
        size of steps come from, both (B, T, H)."""

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        if cache is not None and (mask_BT1 := cache.text_mask(x_BTD.shape[1])) is not None:
            x_BTD = x_BTD * mask_BT1.to(x_BTD.dtype)  # without biases, padding leaves the state as it is
        mixed_BTC, gate_BTE, beta_BTH, step_BTH = self.projected(x_BTD)
        mixed_BTC = self.activation(self.conv1d(mixed_BTC, cache, self.layer))
        keys = self.key_heads * self.key_width
        q_BTE, k_BTE, v_BTE = mixed_BTC.split([keys, keys, self.heads * self.value_width], -1)
        q_BHTK, k_BHTK = self._directions(q_BTE) * self.key_width**-0.5, self._directions(k_BTE)
        v_BHTV = widened(split_heads(v_BTE, self.heads))
        decay_BTH = -widened(self.A_log).exp() * F.softplus(widened(step_BTH) + widened(self.dt_bias))
        states = None if cache is None else cache.states(self.layer)
        shape = len(x_BTD), self.heads, self.key_width, self.value_width
        state_BHKV = v_BHTV.new_zeros(shape) if states is None else states[self.state]
        mixed_BHTV, state_BHKV = gated_delta_rule(
            q_BHTK, k_BHTK, v_BHTV, decay_BTH.mT, widened(F.sigmoid(beta_BTH)).mT, state_BHKV
        )
        if cache is not None:
            cache.store(self.layer, **{self.state: state_BHKV})
        mixed_BTHV = mixed_BHTV.transpose(1, 2).to(x_BTD.dtype)
        gated_BTHV = self.norm(mixed_BTHV, gate_BTE.unflatten(-1, (self.heads, self.value_width)))
        return self.out_proj(gated_BTHV.flatten(2))

    def _directions(self, x_BTE: Tensor) -> Tensor:
        """Return queries or keys of length 1, (B, H, T, K), each for the value heads it serves."""
        x_BGTK = widened(split_heads(x_BTE, self.key_heads))
        x_BGTK = x_BGTK * ((x_BGTK * x_BGTK).sum(-1, keepdim=True) + EPS).rsqrt()
        each = self.heads // self.key_heads
        return x_BGTK.repeat(1, each, 1, 1) if self.tiled else x_BGTK.repeat_interleave(each, 1)


class GatedDeltaLayer(Module):
    """The gated delta rule or gated attention, and a feed-forward part, each after a norm and added to its input."""

    norm_class = GemmaRMSNorm
    mlp_name: ClassVar[str] = "mlp"
    delta_class: ClassVar[type[GatedDeltaNet]]

    def __init__(self, config: GatedDeltaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.has_attention = config.has_attention(layer)
        if self.has_attention:
            self.self_attn = GatedAttention(config, layer, device, dtype)
        else:
            self.linear_attn = self.delta_class(config, layer, device, dtype)
        self.mlp = self.new_mlp(config, layer, device, dtype)
        sizes = {"eps": config.rms_norm_eps, "device": device, "dtype": dtype}
        self.input_layernorm = self.norm_class(config.hidden_size, **sizes)
        self.post_attention_layernorm = self.norm_class(config.hidden_size, **sizes)

    def new_mlp(self, config: Any, layer: int, device: Any, dtype: Any) -> Module:
        """Return the feed-forward part of a layer."""
        return LlamaMLP(config, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        normed_BTD = self.input_layernorm(x_BTD)
        if self.has_attention:
            x_BTD = x_BTD + self.self_attn(normed_BTD, rotary, cache)
        else:
            x_BTD = x_BTD + self.linear_attn(normed_BTD, cache)
        return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))

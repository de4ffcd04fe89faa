"""LFM2 and LFM2.5: most layers have a gated short convolution, the others Llama's attention with norms on the heads.

Loads Hugging Face folders of `Lfm2ForCausalLM` and `Lfm2Model`.

Letters: B batch, T positions, D width, W width of the convolution.

Source:  Liquid AI 2025, arXiv:2511.23404; names as in transformers' `modeling_lfm2.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.fused.eligibility import Kind, Pattern
from tallow.fused.weights import affine, vector
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.state_block import GatedConvolution
from tallow.models.config import rename, tupled
from tallow.models.decoders.hybrid import HybridConfig, HybridLlama, kernel_rows
from tallow.models.decoders.llama import LlamaAttention, LlamaConfig, LlamaMLP, LlamaModel
from tallow.models.decoders.qwen import Qwen3Attention
from tallow.nn.cache import KVCache
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.rotary import RotaryEmbedding
from tallow.nn.short_convolution import ShortConvolution
from tallow.nn.state_memory import States

MLP_NAMES = ("w1", "w3", "w2")


@dataclass(frozen=True, kw_only=True)
class ConvolutionsConfig(HybridConfig):
    """The sizes of an LFM2 with or without experts, as HybridConfig.

    Attributes:
        full_attn_idxs: without layer_types, the layers with attention; None means all.
        conv_L_cache: W.
        conv_bias: whether the convolutions and the projections around them have a bias.
    """

    num_key_value_heads: int = 8
    max_position_embeddings: int = 128_000
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1_000_000.0
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    full_attn_idxs: tuple[int, ...] | None = None
    conv_L_cache: int = 3
    conv_bias: bool = False

    state_type: ClassVar[str] = "conv"
    file_names: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_eps"}
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **LlamaConfig.computed,
        "block_use_swiglu": (True,),
        "use_pos_enc": (True,),
    }
    # Sizes that the first files have twice, and settings of the initial weights.
    neutral: ClassVar[frozenset[str]] = frozenset(
        {"block_dim", "conv_dim", "conv_dim_out", "num_heads", "block_mlp_init_scale", "block_out_init_scale"}
        | {"block_use_xavier_init", "conv_use_xavier_init", "block_norm_eps", "theta"}
    )
    unread: ClassVar[frozenset[str]] = LlamaConfig.unread | {
        *("mlp_bias", "attention_bias", "attention_dropout", "hidden_act")
    }

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        rename(entries, {theirs: name for name, theirs in cls.file_names.items()})
        rename(entries, {"tie_embedding": "tie_word_embeddings", "block_ff_dim": "intermediate_size"})
        tupled(entries, "full_attn_idxs")
        super().prepare(entries)

    def attends(self, layer: int) -> bool:
        return self.full_attn_idxs is None or layer in self.full_attn_idxs

    @property
    def mlp_width(self) -> int:
        """The number of hidden features of the feed-forward parts without experts."""
        return self.intermediate_size

    @property
    def states(self) -> States:
        return States({ShortConvolution.state: (self.conv_L_cache - 1, self.hidden_size)})


@dataclass(frozen=True, kw_only=True)
class Lfm2Config(ConvolutionsConfig):
    """The sizes of an LFM2, as ConvolutionsConfig.

    Attributes:
        block_auto_adjust_ff_dim: the width of the feed-forward parts is 2/3 of intermediate_size, times
            block_ffn_dim_multiplier, rounded up to a multiple of block_multiple_of.
    """

    block_multiple_of: int = 256
    block_ffn_dim_multiplier: float = 1.0
    block_auto_adjust_ff_dim: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("lfm2",)

    @property
    def mlp_width(self) -> int:
        if not self.block_auto_adjust_ff_dim:
            return self.intermediate_size
        width = int(self.block_ffn_dim_multiplier * int(2 * self.intermediate_size / 3))
        return -(-width // self.block_multiple_of) * self.block_multiple_of


class Lfm2Attention(Qwen3Attention):
    """Qwen3's attention under other names."""

    output_name = "out_proj"
    head_norms = ("q_layernorm", "k_layernorm")


class Lfm2ShortConv(Module):
    """out(c ⊙ convolution(b ⊙ x)), where b, c and x are projections of the input."""

    def __init__(self, config: ConvolutionsConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        width, bias = config.hidden_size, config.conv_bias
        self.layer = layer
        self.conv = ShortConvolution(width, config.conv_L_cache, bias, device, dtype)
        self.in_proj = Linear(width, 3 * width, bias, device, dtype)
        self.out_proj = Linear(width, width, bias, device, dtype)

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        b_BTD, c_BTD, x_BTD = self.in_proj(x_BTD).chunk(3, -1)
        gated_BTD = b_BTD * x_BTD
        if cache is not None and (mask_BT1 := cache.text_mask(x_BTD.shape[1])) is not None:
            gated_BTD = gated_BTD * mask_BT1.to(gated_BTD.dtype)
        return self.out_proj(c_BTD * self.conv(gated_BTD, cache, self.layer))


class Lfm2DecoderLayer(Module):
    """A convolution or attention, and a feed-forward part, each after a norm and added to its input."""

    norm_class = RMSNorm
    mlp_name: ClassVar[str] = "feed_forward"

    def __init__(self, config: ConvolutionsConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.has_attention = config.has_attention(layer)
        if self.has_attention:
            self.self_attn = Lfm2Attention(config, layer, device, dtype)
        else:
            self.conv = Lfm2ShortConv(config, layer, device, dtype)
        self.feed_forward = self.new_mlp(config, layer, device, dtype)
        sizes = {"eps": config.rms_norm_eps, "device": device, "dtype": dtype}
        self.operator_norm = RMSNorm(config.hidden_size, **sizes)
        self.ffn_norm = RMSNorm(config.hidden_size, **sizes)

    def new_mlp(self, config: Any, layer: int, device: Any, dtype: Any) -> Module:
        """Return the feed-forward part of a layer."""
        return LlamaMLP(config, device, dtype, config.mlp_width, MLP_NAMES)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        normed_BTD = self.operator_norm(x_BTD)
        if self.has_attention:
            x_BTD = x_BTD + self.self_attn(normed_BTD, rotary, cache)
        else:
            x_BTD = x_BTD + self.conv(normed_BTD, cache)
        return x_BTD + self.feed_forward(self.ffn_norm(x_BTD))


class Lfm2Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class: ClassVar[type[ConvolutionsConfig]] = Lfm2Config
    layer_class = Lfm2DecoderLayer
    norm_name = "embedding_norm"


class Lfm2(HybridLlama):
    """A language model; Hugging Face's `Lfm2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = Lfm2Model
    fused_biases = (*HybridLlama.fused_biases, "conv.in_proj", "conv.out_proj")
    fused_pattern = Pattern(
        {
            **HybridLlama.fused_pattern.kinds,
            Lfm2DecoderLayer: Kind(settings=("has_attention",), methods=("forward",)),
            Lfm2Attention: HybridLlama.fused_pattern.kinds[LlamaAttention],
            Lfm2ShortConv: Kind(settings=("layer",)),
            ShortConvolution: Kind(),
        }
    )

    def fused_norms(self, layer: Any) -> tuple[Array, Array]:
        return self.fused_norm(layer.operator_norm), self.fused_norm(layer.ffn_norm)

    def fused_mixer(self, layer: Any, cache: KVCache) -> tuple[GatedConvolution, Affine]:
        part = layer.conv
        past = cache.layers[part.layer].states[ShortConvolution.state]
        mixer = GatedConvolution(affine(part.in_proj), kernel_rows(part.conv), vector(part.conv.bias), past)
        return mixer, affine(part.out_proj)

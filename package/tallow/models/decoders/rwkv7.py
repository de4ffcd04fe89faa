"""RWKV-7: layers whose memory is a matrix for each head, which each position decays, corrects and adds to.

Loads Hugging Face folders of `RWKV7ForCausalLM` and `RWKV7Model`, of the package flash-linear-attention.

Letters: B batch, T positions, D width, H heads, K head width, R rank.

Source:  Peng et al. 2025, arXiv:2503.14456; names as in the checkpoints of flash-linear-attention's `modeling_rwkv7.py`
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.models.config import MAX_SIZE
from tallow.models.decoders.decoder import DecoderConfig, DecoderModel
from tallow.models.decoders.mamba import LONGEST, STATE, Mamba, masked, widened
from tallow.models.decoders.rwkv7_formats import MIXES
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.activation import Sigmoid, Tanh
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.channel_normalization import GroupNorm
from tallow.nn.container import ModuleList, Sequential
from tallow.nn.embedding import Embedding
from tallow.nn.generalized_delta import generalized_delta_rule
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import empty_parameter
from tallow.nn.state_memory import States
from tallow.ops.joining import cat

RATE = -math.exp(-0.5)  # the largest rate of decay
OF_FEED_FORWARD, OF_ATTENTION = "last_of_ffn", "last_of_attn"  # the names in a cache of the last inputs


@dataclass(frozen=True, kw_only=True)
class RWKV7Config(DecoderConfig):
    """The sizes of an RWKV-7, as DecoderConfig.

    Attributes:
        head_dim: K.
        intermediate_size: the number of hidden features of the feed-forward parts.
        decay_low_rank_dim, a_low_rank_dim, v_low_rank_dim, gate_low_rank_dim: the ranks of what decays, corrections,
            shares of the first layer's values, and gates come from.
        norm_first: whether a norm follows the embedding of tokens.
        norm_bias: whether the norms have biases.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    intermediate_size: int
    head_dim: int = 64
    decay_low_rank_dim: int = 64
    a_low_rank_dim: int = 64
    v_low_rank_dim: int = 16
    gate_low_rank_dim: int = 128
    hidden_act: str = "relu2"
    norm_first: bool = True
    norm_bias: bool = True
    norm_eps: float = 1e-5

    model_types: ClassVar[tuple[str, ...]] = ("rwkv7", "rwkv7_fla")
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **DecoderConfig.computed,
        "attn": (None,),
        "value_dim": (None,),
    }
    # How flash-linear-attention computes, and sizes that others give.
    neutral: ClassVar[frozenset[str]] = frozenset(
        {"attn_mode", "fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy", "use_l2warp", "hidden_ratio"}
        | {"max_position_embeddings", "num_heads"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.hidden_act)
        self.require("head_dim", "a divisor of hidden_size", lambda value: self.hidden_size % value == 0)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if entries.get("hidden_act") == "sqrelu":
            entries["hidden_act"] = "relu2"
        width: Any = entries.get("hidden_size")
        ratio: Any = 4 if entries.get("hidden_ratio") is None else entries["hidden_ratio"]
        is_size = type(width) is int and type(ratio) in (int, float) and 0 < ratio <= MAX_SIZE
        if entries.get("intermediate_size") is None and is_size:
            entries["intermediate_size"] = 32 * -(-int(min(width, MAX_SIZE) * ratio) // 32)
        heads = entries.get("num_heads")
        if entries.get("head_dim") is None and type(width) is type(heads) is int and heads > 0:
            entries["head_dim"] = width // heads
        values = entries.get("value_dim")
        if isinstance(values, list) and all(value == width for value in values):
            del entries["value_dim"]

    @property
    def heads(self) -> int:
        """H"""
        return self.hidden_size // self.head_dim

    @property
    def layer_shapes(self) -> tuple[States, ...]:
        shapes: dict[str, tuple[int, ...]] = {
            OF_ATTENTION: (1, self.hidden_size),
            OF_FEED_FORWARD: (1, self.hidden_size),
            STATE: (self.heads, self.head_dim, self.head_dim),
        }
        return (States(shapes),) * self.num_hidden_layers

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a state dict with the shares of the position before in parts, which older files have as one."""
        parts: dict[str, Any] = {}
        for name, tensor in state.items():
            if not name.endswith(".attn.x_x"):
                parts[name] = tensor
                continue
            path = name.removesuffix("x_x")
            parts |= {f"{path}x_{mix}": tensor[i].reshape(1, 1, -1) for i, mix in enumerate(MIXES)}
        return parts


def difference(x_BTD: Tensor, cache: KVCache | None, layer: int, name: str) -> Tensor:
    """Return the inputs of the positions before, minus those of the positions. With a cache, the last input is kept.

    Args:    layer, name: of the state in the cache
    """
    states = None if cache is None else cache.states(layer)
    past_B1D = x_BTD.new_zeros(len(x_BTD), 1, x_BTD.shape[-1]) if states is None else states[name].to(x_BTD.dtype)
    delta_BTD = apply(cat, [past_B1D, x_BTD[:, :-1]], 1) - x_BTD
    if cache is not None:  # now that the state, which is replaced in place, has been read
        cache.store(layer, **{name: x_BTD[:, -1:]})
    return delta_BTD


class LowRank(Module):
    """Two linear layers with few features between them."""

    def __init__(self, width: int, rank: int, middle: Module, bias: bool, device: Any, dtype: Any) -> None:
        super().__init__()
        first, second = Linear(width, rank, False, device, dtype), Linear(rank, width, bias, device, dtype)
        self.lora = Sequential(first, middle, second)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.lora(x_BTD)


class RWKV7Attention(Module):
    """The mix over positions: what a key stands for is replaced in the memory, in part, by its value."""

    def __init__(self, config: RWKV7Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer, self.heads, width = layer, config.heads, config.hidden_size
        for mix in MIXES:
            self.register_parameter(f"x_{mix}", empty_parameter(1, 1, width, device=device, dtype=dtype))
        self.k_k = empty_parameter(width, device=device, dtype=dtype)
        self.k_a = empty_parameter(width, device=device, dtype=dtype)
        self.r_k = empty_parameter(config.heads, config.head_dim, device=device, dtype=dtype)
        for name in ("r_proj", "k_proj", "v_proj", "o_proj"):
            self.add_module(name, Linear(width, width, False, device, dtype))
        place = {"device": device, "dtype": dtype}
        self.w_lora = LowRank(width, config.decay_low_rank_dim, Tanh(), True, **place)
        if layer:
            self.v_lora = LowRank(width, config.v_low_rank_dim, Identity(), True, **place)
        self.a_lora = LowRank(width, config.a_low_rank_dim, Identity(), True, **place)
        self.g_lora = LowRank(width, config.gate_low_rank_dim, Sigmoid(), False, **place)
        self.g_norm = GroupNorm(config.heads, width, config.head_dim * config.norm_eps, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set half of each input to that of the position before, and the factors of keys to 1."""
        for mix in MIXES:
            init.constant_(getattr(self, f"x_{mix}"), 0.5)
        init.ones_(self.k_k)
        init.ones_(self.k_a)
        init.zeros_(self.r_k)

    def forward(self, x_BTD: Tensor, first_BTD: Tensor | None, cache: KVCache | None) -> tuple[Tensor, Tensor]:
        """Return the outputs and the values of the first layer, (B, T, D).  Args: first_BTD: None in that layer"""
        delta_BTD = difference(x_BTD, cache, self.layer, OF_ATTENTION)
        of_r, of_w, of_k, of_v, of_a, of_g = (x_BTD + delta_BTD * getattr(self, f"x_{mix}") for mix in MIXES)
        v_BTD, k_BTD = self.v_proj(of_v), self.k_proj(of_k)
        first_BTD = v_BTD if first_BTD is None else first_BTD
        if self.layer:
            v_BTD = v_BTD + (first_BTD - v_BTD) * F.sigmoid(self.v_lora(of_v))
        a_BTD = F.sigmoid(self.a_lora(of_a))
        directions = F.normalize(self._heads(k_BTD * self.k_k), dim=-1)
        k_BTD = k_BTD * (1 + (a_BTD - 1) * self.k_a)
        r_BHTK, k_BHTK, v_BHTK = map(self._heads, (self.r_proj(of_r), k_BTD, v_BTD))
        decay_BHTK = F.sigmoid(self._heads(self.w_lora(of_w))) * RATE
        states = None if cache is None else cache.states(self.layer)
        shape = len(x_BTD), self.heads, k_BHTK.shape[-1], v_BHTK.shape[-1]
        state_BHKK = v_BHTK.new_zeros(shape) if states is None else states[STATE]
        corrected = directions * self._heads(a_BTD)
        y_BHTK, state_BHKK = generalized_delta_rule(
            r_BHTK, decay_BHTK, k_BHTK, v_BHTK, -directions, corrected, state_BHKK
        )
        if cache is not None:
            cache.store(self.layer, **{STATE: state_BHKK})
        normed_BTD = self.g_norm(merge_heads(y_BHTK).to(x_BTD.dtype).flatten(0, 1)).reshape(x_BTD.shape)
        own_BHT1 = (r_BHTK * k_BHTK * widened(self.r_k).unsqueeze(1)).sum(-1, keepdim=True)
        y_BTD = normed_BTD + merge_heads(own_BHT1 * v_BHTK).to(x_BTD.dtype)
        return self.o_proj(y_BTD * self.g_lora(of_g)), first_BTD

    def _heads(self, x_BTD: Tensor) -> Tensor:
        return widened(split_heads(x_BTD, self.heads))


class RWKV7FeedForward(Module):
    """value(activation(key(x))), where x has a share of the position before."""

    def __init__(self, config: RWKV7Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.x_k = empty_parameter(config.hidden_size, device=device, dtype=dtype)
        self.key = Linear(config.hidden_size, config.intermediate_size, False, device, dtype)
        self.value = Linear(config.intermediate_size, config.hidden_size, False, device, dtype)
        self.activation = activation_named(config.hidden_act)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set half of each input to that of the position before."""
        init.constant_(self.x_k, 0.5)

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        delta_BTD = difference(x_BTD, cache, self.layer, OF_FEED_FORWARD)
        return self.value(self.activation(self.key(x_BTD + delta_BTD * self.x_k)))


class RWKV7Block(Module):
    """Both mixes, each after a norm and added to its input; the first block normalises the embeddings, too."""

    def __init__(self, config: RWKV7Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        names = ("pre_norm", "attn_norm", "ffn_norm") if config.norm_first and not layer else ("attn_norm", "ffn_norm")
        for name in names:
            self.add_module(name, new_norm(config, device, dtype))
        self.has_pre_norm = names[0] == "pre_norm"
        self.attn = RWKV7Attention(config, layer, device, dtype)
        self.ffn = RWKV7FeedForward(config, layer, device, dtype)

    def forward(self, x_BTD: Tensor, first_BTD: Tensor | None, cache: KVCache | None) -> tuple[Tensor, Tensor]:
        """Return the outputs and the values of the first layer, as RWKV7Attention."""
        mask_BT1 = None if cache is None else cache.text_mask(x_BTD.shape[1])
        if self.has_pre_norm:
            x_BTD = self.pre_norm(x_BTD)
        mixed_BTD, first_BTD = self.attn(masked(self.attn_norm(x_BTD), mask_BT1), first_BTD, cache)
        x_BTD = x_BTD + mixed_BTD
        return x_BTD + self.ffn(masked(self.ffn_norm(x_BTD), mask_BT1), cache), first_BTD


def new_norm(config: RWKV7Config, device: Any, dtype: Any) -> LayerNorm:
    """Return a norm of D elements."""
    return LayerNorm(config.hidden_size, config.norm_eps, bias=config.norm_bias, device=device, dtype=dtype)


class RWKV7Model(DecoderModel):
    """The layers without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class: ClassVar[type[RWKV7Config]] = RWKV7Config
    base_model_prefix = "model"

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embeddings = Embedding(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self.layers = ModuleList(RWKV7Block(config, i, device, dtype) for i in range(config.num_hidden_layers))
        self.norm = new_norm(config, device, dtype)
        self.reset_parameters()

    @property
    def token_embedding(self) -> Embedding:
        return self.embeddings

    @property
    def context_length(self) -> int:
        return LONGEST

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD, first_BTD = self.embeddings(tokens_BT), None
        for layer in self.layers:
            x_BTD, first_BTD = layer(x_BTD, first_BTD, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.norm(x_BTD)


class RWKV7(Mamba):
    """A language model; flash-linear-attention's `RWKV7ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[Any] = RWKV7Model

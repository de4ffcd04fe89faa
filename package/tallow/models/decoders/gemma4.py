"""Gemma 4 for texts: Gemma 3's layers with an embedding of each token for each layer, wider heads in layers that see
all positions, and last layers that read the keys and values of earlier ones.

Loads Hugging Face folders of `Gemma4ForCausalLM` and `Gemma4TextModel`, and the texts' part of those of
`Gemma4ForConditionalGeneration`.

Letters: B batch, T positions, D width, L layers, P width of a layer's embeddings, K head width.

Source:  Gemma Team 2026, https://ai.google.dev/gemma/docs/core; names as in transformers' `modeling_gemma4.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import ones
from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.models.causal_lm import CacheShape
from tallow.models.config import Count, texts_part
from tallow.models.decoders.layer_types import FULL, SLIDING, LocalRotaryConfig, LocalRotaryModel
from tallow.models.decoders.layers import PlainRMSNorm
from tallow.models.decoders.llama import Llama, LlamaConfig, LlamaMLP, LlamaModel
from tallow.nn.attention import causal_attention, merge_heads, soft_cap, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.rotary import RotaryEmbedding
from tallow.nn.state_memory import KeysValues

# Of a config without rotary settings, which transformers' class has.
ROPE = {
    SLIDING: {"rope_type": "default", "rope_theta": 10_000.0},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1_000_000.0},
}
TEXTS = "model.language_model."  # names of the texts' part of a model of images and sounds
OTHERS = ("model.vision_tower.", "model.audio_tower.", "model.embed_vision.", "model.embed_audio.")
UNREAD_KEYS = ("k_proj", "v_proj", "k_norm", "v_norm")  # of layers that read those of others; files may have them


@dataclass(frozen=True, kw_only=True)
class Gemma4Config(LocalRotaryConfig):
    """The sizes of a Gemma 4, as LocalRotaryConfig. Without layer_types every sixth layer, and the last, sees all
    positions.

    Attributes:
        global_head_dim: K in layers that see all positions.
        num_global_key_value_heads: the number of key heads in those layers, if attention_k_eq_v; None means
            num_key_value_heads.
        attention_k_eq_v: values are keys before their norm, in those layers.
        num_kv_shared_layers: the number of last layers that read keys and values of the last earlier layer of their
            kind.
        use_double_wide_mlp: those layers have feed-forward parts of twice the width.
        hidden_size_per_layer_input: P; 0 means no embeddings for layers.
        vocab_size_per_layer_input: the number of tokens with such embeddings.
    """

    hidden_activation: str = "gelu_pytorch_tanh"
    head_dim: int | None = 256
    global_head_dim: int = 512
    num_global_key_value_heads: int | None = None
    attention_k_eq_v: bool = False
    num_kv_shared_layers: Count = 0
    use_double_wide_mlp: bool = False
    hidden_size_per_layer_input: Count = 256
    vocab_size_per_layer_input: int = 262_144
    final_logit_softcapping: float | None = None
    num_key_value_heads: int = 4
    max_position_embeddings: int = 131_072
    rope_theta: float = 1_000_000.0
    rope_local_base_freq: float | None = 10_000.0
    bos_token_id: int = 2
    eos_token_id: tuple[int, ...] = (1,)
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("gemma4_text", "gemma4")
    always_causal: ClassVar[bool] = True
    unread: ClassVar[frozenset[str]] = frozenset({"hidden_act", "mlp_bias"})
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **LlamaConfig.computed,
        "enable_moe_block": (False,),
        "use_bidirectional_attention": (False, "vision"),  # the latter among the parts of an image
    }
    neutral: ClassVar[frozenset[str]] = frozenset(
        # Of models with experts, and of images and sounds.
        {"num_experts", "top_k_experts", "moe_intermediate_size", "eoa_token_index", "vision_soft_tokens_per_image"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("global_head_dim", "an even integer", lambda value: value % 2 == 0)
        self.require("final_logit_softcapping", "a positive number", lambda value: value is None or value > 0)
        self.require(
            "num_kv_shared_layers",
            "so few that a layer of each kind has keys of its own",
            lambda _: self._kinds(0, self.owners) >= self._kinds(self.owners, self.num_hidden_layers),
        )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        texts_part(entries, "vision_config", "audio_config")
        if entries.get("rope_parameters") is None:
            entries["rope_parameters"] = {kind: {**rope} for kind, rope in ROPE.items()}
        _move_layer_sizes(entries)
        super().prepare(entries)
        entries.setdefault("sliding_window", 512)
        if kinds := entries.get("layer_types"):
            entries["layer_types"] = (*kinds[:-1], FULL) if isinstance(kinds, tuple) else kinds

    @property
    def activation(self) -> str:
        return self.hidden_activation

    @property
    def rotary_width(self) -> int:
        return self.global_head_dim

    @property
    def owners(self) -> int:
        """The number of first layers that have keys and values of their own."""
        return max(0, self.num_hidden_layers - self.num_kv_shared_layers)

    def _kinds(self, start: int, end: int) -> set[bool]:
        """Return whether layers of a range slide. Without layer_types six in a row have all kinds: the number of layers
        in a file takes no time before it is checked."""
        last = end if self.layer_types is not None else min(end, start + 6)
        return {self.is_sliding(layer) for layer in range(start, last)}

    def slides(self, layer: int) -> bool:
        return (layer + 1) % 6 != 0 and layer + 1 < self.num_hidden_layers

    def sizes_of(self, layer: int) -> KeysValues:
        """Return the number of key heads and the head width of a layer."""
        if self.is_sliding(layer):
            return KeysValues(self.num_key_value_heads, self.head_width)
        heads = self.num_global_key_value_heads if self.attention_k_eq_v else None
        return KeysValues(heads or self.num_key_value_heads, self.global_head_dim)

    @property
    def layer_shapes(self) -> tuple[KeysValues, ...]:
        return tuple(map(self.sizes_of, range(self.owners)))

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the tensors of the texts' part, under the names of a model of texts alone."""
        named = {name.replace(TEXTS, "model."): tensor for name, tensor in state.items() if not name.startswith(OTHERS)}
        last = tuple(f"layers.{i}.self_attn." for i in range(self.owners, self.num_hidden_layers))
        return {name: tensor for name, tensor in named.items() if not _is_unread(name, last)}


def _is_unread(name: str, layers: tuple[str, ...]) -> bool:
    """Return whether a tensor is of keys and values of a layer that reads those of another."""
    path, _, module = name.rpartition(".")[0].rpartition(".")
    return module in UNREAD_KEYS and f"{path}.".endswith(layers)


def _move_layer_sizes(entries: dict[str, Any]) -> None:
    """Move the sizes of layers that see all positions from `per_layer_config`, as transformers 5 writes them: those
    that are not those of the other layers."""
    each = entries.pop("per_layer_config", None)
    if isinstance(each, dict):
        entries["global_head_dim"] = entries.get("head_dim", Gemma4Config.head_dim)
    if isinstance(each, dict) and each and all(isinstance(sizes, dict) for sizes in each.values()):
        first = next(iter(each.values()))
        if any(sizes != first for sizes in each.values()) or not {*first} <= {"head_dim", "num_key_value_heads"}:
            entries["per_layer_config_scaling"] = each  # refused, as sizes that no name here stands for
            return
        names = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}
        entries |= {names[name]: size for name, size in first.items()}


class Shared(dict[bool, tuple[Tensor, Tensor]]):
    """The keys and values of the last layer of each kind that has its own; by whether the kind has a window."""


class Gemma4Attention(Module):
    """Causal self-attention with norms on queries, keys and values, or with the keys and values of another layer."""

    def __init__(self, config: Gemma4Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer, self.window, self.slides = layer, config.window_of(layer), config.is_sliding(layer)
        self.num_heads, self.dropout_p = config.num_attention_heads, config.attention_dropout
        self.num_kv_heads, width, _ = config.sizes_of(layer)
        self.is_owner = layer < config.owners
        hidden, bias, eps = config.hidden_size, config.attention_bias, config.rms_norm_eps
        self.q_proj = Linear(hidden, self.num_heads * width, bias, device, dtype)
        self.q_norm = RMSNorm(width, eps, device=device, dtype=dtype)
        self.has_values = self.is_owner and (self.slides or not config.attention_k_eq_v)
        if self.is_owner:
            self.k_norm = RMSNorm(width, eps, device=device, dtype=dtype)
            self.v_norm = PlainRMSNorm(width, eps)
            self.k_proj = Linear(hidden, self.num_kv_heads * width, bias, device, dtype)
        if self.has_values:
            self.v_proj = Linear(hidden, self.num_kv_heads * width, bias, device, dtype)
        self.o_proj = Linear(self.num_heads * width, hidden, bias, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None, shared: Shared) -> Tensor:
        start, padding = (0, None) if cache is None else (cache.length, cache.padding)
        q_BHTK = rotary(self.q_norm(split_heads(self.q_proj(x_BTD), self.num_heads)), start, padding)
        if self.is_owner:
            keys_BGTK = split_heads(self.k_proj(x_BTD), self.num_kv_heads)
            values_BGTK = split_heads(self.v_proj(x_BTD), self.num_kv_heads) if self.has_values else keys_BGTK
            k_BGSK, v_BGSK = rotary(self.k_norm(keys_BGTK), start, padding), self.v_norm(values_BGTK)
            if cache is not None:
                k_BGSK, v_BGSK = cache.append(self.layer, k_BGSK, v_BGSK)
            shared[self.slides] = k_BGSK, v_BGSK
        k_BGSK, v_BGSK = shared[self.slides]
        mixed_BHTK = causal_attention(
            q_BHTK,
            k_BGSK,
            v_BGSK,
            scale=1.0,
            dropout_p=self.dropout_p if self.training else 0.0,
            window=self.window,
            lengths=None if cache is None else cache.lengths(x_BTD.shape[1]),
            masks=None if cache is None else cache.masks,
        )
        return self.o_proj(merge_heads(mixed_BHTK))


class Gemma4DecoderLayer(Module):
    """Attention and feed-forward, each between two norms and added to its input, then the layer's own embedding."""

    norm_class = RMSNorm

    def __init__(self, config: Gemma4Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.hidden_size_per_layer_input
        self.self_attn = Gemma4Attention(config, layer, device, dtype)
        doubled = config.use_double_wide_mlp and layer >= config.owners
        self.mlp = LlamaMLP(config, device, dtype, config.intermediate_size * (2 if doubled else 1))
        names = ["input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm"]
        names += ["post_feedforward_layernorm", *(["post_per_layer_input_norm"] if inner else [])]
        for name in names:
            self.add_module(name, RMSNorm(width, config.rms_norm_eps, device=device, dtype=dtype))
        self.register_buffer("layer_scalar", ones(1, device=device, dtype=dtype))
        self.has_input = inner > 0
        if inner:
            self.per_layer_input_gate = Linear(width, inner, False, device, dtype)
            self.per_layer_projection = Linear(inner, width, False, device, dtype)
            self.activation = activation_named(config.activation)

    def forward(
        self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None, shared: Shared, input_BTP: Tensor | None
    ) -> Tensor:
        attended_BTD = self.self_attn(self.input_layernorm(x_BTD), rotary, cache, shared)
        x_BTD = x_BTD + self.post_attention_layernorm(attended_BTD)
        x_BTD = x_BTD + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x_BTD)))
        if self.has_input:
            gated_BTP = self.activation(self.per_layer_input_gate(x_BTD)) * input_BTP
            x_BTD = x_BTD + self.post_per_layer_input_norm(self.per_layer_projection(gated_BTP))
        return x_BTD * self.layer_scalar


class Gemma4TextModel(LocalRotaryModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).

    The table of the layers' embeddings is the largest tensor; as in the file it stays mapped, and rows are read.

    Args:    as DecoderModel
    """

    config_class = Gemma4Config
    layer_class = Gemma4DecoderLayer

    def __init__(self, config: Gemma4Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        if inner := config.hidden_size_per_layer_input:
            width = config.num_hidden_layers * inner
            self.embed_tokens_per_layer = Embedding(
                config.vocab_size_per_layer_input, width, device=device, dtype=dtype
            )
            self.per_layer_model_projection = Linear(config.hidden_size, width, False, device, dtype)
            self.per_layer_projection_norm = RMSNorm(inner, config.rms_norm_eps, device=device, dtype=dtype)
        self.reset_parameters()

    def embed(self, tokens_BT: Tensor) -> Tensor:
        return _scaled(self.embed_tokens(tokens_BT), self.config.hidden_size)

    def layer_inputs(self, tokens_BT: Tensor, x_BTD: Tensor) -> list[Tensor] | list[None]:
        """Return for each layer its embeddings (B, T, P): those of the tokens, and a projection of the first ones."""
        layers, inner = self.config.num_hidden_layers, self.config.hidden_size_per_layer_input
        if not inner:
            return [None] * layers
        own = _scaled(self.embed_tokens_per_layer(tokens_BT), inner).unflatten(-1, (layers, inner))
        projected = (self.per_layer_model_projection(x_BTD) * self.config.hidden_size**-0.5).unflatten(
            -1, (layers, inner)
        )
        both_BTLP = (self.per_layer_projection_norm(projected) + own) * 0.5**0.5
        return [both_BTLP[:, :, i] for i in range(layers)]

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD, shared = self.embed(tokens_BT), Shared()
        inputs = self.layer_inputs(tokens_BT, x_BTD)
        for i, layer in enumerate(self.layers):
            x_BTD = layer(x_BTD, self.rotary_of(i), cache, shared, inputs[i])
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.norm(x_BTD)


def _scaled(x: Tensor, width: int) -> Tensor:
    """Return embeddings times the root of a width, rounded to their dtype as in training."""
    return x * x.new_tensor(width**0.5)


class Gemma4(Llama):
    """A language model; Hugging Face's `Gemma4ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = Gemma4TextModel

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(self.config.owners, *self.config.sizes_of(0)[:2])

    @property
    def windows(self) -> tuple[int | None, ...]:
        return tuple(map(self.config.window_of, range(self.config.owners)))

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return soft_cap(super().logits(hidden_BTD), self.config.final_logit_softcapping)

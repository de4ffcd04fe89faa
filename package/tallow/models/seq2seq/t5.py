"""T5: an encoder and a decoder that turn text into text, with positions as biases of attention.

Loads Hugging Face folders of `T5ForConditionalGeneration` and `T5EncoderModel`: T5, T5 v1.1 and Flan-T5.

Letters: B texts, T query positions, S key positions, D width, H heads, K head width, F feed-forward width,
V vocabulary.

Source:  Raffel et al. 2020, arXiv:1910.10683; names as in transformers' `modeling_t5.py`
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tallow import dtypes
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named, gated
from tallow.models.causal_lm import CacheShape
from tallow.models.config import MAX_SIZE
from tallow.models.pretrained import PretrainedModel
from tallow.models.seq2seq.cross_layers import CrossKeys
from tallow.models.seq2seq.model import Seq2SeqConfig, Seq2SeqLM, Sources
from tallow.nn import init
from tallow.nn.attention import cross_attention, key_mask, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.relative_positions import bucket_bias

where = PUBLIC["tl"]["where"]


@dataclass(frozen=True, kw_only=True)
class T5Config(Seq2SeqConfig):
    """The sizes of a T5, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        d_kv: K; H · K may differ from D.
        num_decoder_layers: None means as many as the encoder has.
        relative_attention_num_buckets, relative_attention_max_distance: see `nn.relative_positions.buckets`
        feed_forward_proj: an activation, or "gated-" and an activation.
        scale_decoder_outputs: divide the head's input by √D; None means that tied embeddings do, as in T5 before v1.1.
        initializer_factor: of the standard deviations of new weights.
    """

    d_model: int
    d_kv: int
    d_ff: int
    num_layers: int
    num_heads: int
    num_decoder_layers: int | None = None
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    feed_forward_proj: str = "relu"
    scale_decoder_outputs: bool | None = None
    initializer_factor: float = 1.0

    shares_bias: ClassVar[bool] = True  # the first layer's bias is that of all
    model_types: ClassVar[tuple[str, ...]] = ("t5",)
    layer_counts: ClassVar[tuple[str, ...]] = ("num_layers", "num_decoder_layers")
    computed: ClassVar = {"is_encoder_decoder": (True, False)}  # False in folders of T5EncoderModel
    # The last two follow from feed_forward_proj; positions are relative, so nothing depends on n_positions.
    neutral: ClassVar = frozenset({"n_positions", "dense_act_fn", "is_gated_act"})

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation)
        if self.relative_attention_num_buckets % 4 or (
            self.relative_attention_max_distance <= self.relative_attention_num_buckets // 2
        ):
            raise ArgumentError(
                f"T5Config: {self.relative_attention_num_buckets} buckets for distances up to "
                f"{self.relative_attention_max_distance}",
                hint="pass a multiple of 4, and a distance above half of it",
            )

    @property
    def activation(self) -> str:
        """The name of the activation; the gated GELU is the approximation with tanh."""
        return "gelu_new" if self.feed_forward_proj == "gated-gelu" else self.feed_forward_proj.removeprefix("gated-")

    def with_own(self, weights: Collection[str]) -> Self:
        # Other versions of transformers write either value for a model with a head of its own, and mean the scale.
        tied = "lm_head.weight" not in weights
        return replace(super().with_own(weights), tie_word_embeddings=tied, scale_decoder_outputs=self.is_scaled)

    @property
    def is_scaled(self) -> bool:
        """The head's input is divided by √D."""
        return self.tie_word_embeddings if self.scale_decoder_outputs is None else self.scale_decoder_outputs


class T5Attention(Module):
    """The projections of attention. Scores are not scaled; the first layer of a stack has the bias of all layers."""

    def __init__(self, config: T5Config, device: Any, dtype: Any, *, has_bias: bool = False) -> None:
        super().__init__()
        inner = config.num_heads * config.d_kv
        self.num_heads = config.num_heads
        self.dropout_p = config.dropout_rate
        for name in "qkv":
            self.add_module(name, Linear(config.d_model, inner, False, device, dtype))
        self.o = Linear(inner, config.d_model, False, device, dtype)
        if has_bias:
            buckets = config.relative_attention_num_buckets
            self.relative_attention_bias = Embedding(buckets, config.num_heads, device=device, dtype=dtype)

    def query(self, x_BTD: Tensor) -> Tensor:
        """Return queries (B, H, T, K)."""
        return split_heads(self.q(x_BTD), self.num_heads)

    def keys_and_values(self, x_BSD: Tensor) -> CrossKeys:
        """Return keys and values (B, H, S, K)."""
        return CrossKeys(*(split_heads(project(x_BSD), self.num_heads) for project in (self.k, self.v)))

    def forward(self, x_BTD: Tensor, seen: CrossKeys, mask: Tensor | None) -> Tensor:
        """Attend from each position of x; the mask is as scaled_dot_product_attention takes it."""
        dropout_p = self.dropout_p if self.training else 0.0
        mixed_BHTK = cross_attention(self.query(x_BTD), *seen, mask, scale=1.0, dropout_p=dropout_p)
        return self.o(merge_heads(mixed_BHTK))


class T5Layer(Module):
    """A norm before one part of a block, whose output is added to the input."""

    def __init__(self, config: T5Config, name: str, part: Module, device: Any, dtype: Any) -> None:
        super().__init__()
        self.part_name = name
        self.add_module(name, part)
        self.layer_norm = RMSNorm(config.d_model, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.dropout = Dropout(config.dropout_rate)

    @property
    def part(self) -> Any:
        """The attention or the feed-forward part."""
        return getattr(self, self.part_name)


class T5FeedForward(Module):
    """wo(activation(wi(x))), or wo(activation(wi_0(x)) ⊙ wi_1(x))"""

    def __init__(self, config: T5Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.activation = activation_named(config.activation)
        self.is_gated = config.feed_forward_proj.startswith("gated-")
        for name in ("wi_0", "wi_1") if self.is_gated else ("wi",):
            self.add_module(name, Linear(config.d_model, config.d_ff, False, device, dtype))
        self.wo = Linear(config.d_ff, config.d_model, False, device, dtype)
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.is_gated:
            inner_BTF = gated(self.activation, self.wi_0(x_BTD), self.wi_1(x_BTD))
        else:
            inner_BTF = self.activation(self.wi(x_BTD))
        return self.wo(self.dropout(inner_BTF))


class T5Block(Module):
    """Self-attention, in a decoder cross-attention, and feed-forward, each after a norm and added to its input."""

    def __init__(self, config: T5Config, index: int, device: Any, dtype: Any, *, crosses: bool) -> None:
        super().__init__()
        parts: list[tuple[str, Module]] = [
            ("SelfAttention", T5Attention(config, device, dtype, has_bias=index == 0 or not config.shares_bias)),
            ("DenseReluDense", T5FeedForward(config, device, dtype)),
        ]
        if crosses:
            parts.insert(1, ("EncDecAttention", T5Attention(config, device, dtype)))
        self.index = index
        self.layer = ModuleList(T5Layer(config, name, part, device, dtype) for name, part in parts)

    def forward(
        self, x_BTD: Tensor, mask: Tensor | None, sources: Sources | None = None, cache: KVCache | None = None
    ) -> Tensor:
        own, *cross, last = self.layer
        normed_BTD = own.layer_norm(x_BTD)
        seen = own.part.keys_and_values(normed_BTD)
        if cache is not None:
            seen = CrossKeys(*cache.append(self.index, *seen))
        x_BTD = x_BTD + own.dropout(own.part(normed_BTD, seen, mask))
        if sources is not None:
            (layer,) = cross
            y_BTD = layer.part(layer.layer_norm(x_BTD), sources.layers[self.index], sources.mask)
            x_BTD = x_BTD + layer.dropout(y_BTD)
        return x_BTD + last.dropout(last.part(last.layer_norm(x_BTD)))


class T5Stack(Module):
    """The blocks of the encoder or the decoder, and a norm."""

    def __init__(self, config: T5Config, layers: int, device: Any, dtype: Any, *, is_decoder: bool = False) -> None:
        super().__init__()
        self.is_decoder = is_decoder
        self.embed_tokens: Embedding | None = None
        if ("decoder" if is_decoder else "encoder") in config.own_tables:
            self.embed_tokens = Embedding(config.vocab_size, config.d_model, device=device, dtype=dtype)
        self.longest = config.relative_attention_max_distance
        self.shares_bias = config.shares_bias
        self.block = ModuleList(T5Block(config, i, device, dtype, crosses=is_decoder) for i in range(layers))
        self.final_layer_norm = RMSNorm(config.d_model, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.dropout = Dropout(config.dropout_rate)

    def forward(
        self,
        x_BTD: Tensor,
        mask: Tensor | None = None,
        sources: Sources | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Return hidden states (B, T, D) of embeddings (B, T, D).

        Args:
            mask: True for the keys that queries may see.
            sources: what a decoder attends to.
            cache: a decoder's; the positions follow those in it, and are appended to it.
        """
        length = x_BTD.shape[1]
        keys = length if cache is None else cache.length + length
        x_BTD = self.dropout(x_BTD)
        for i, block in enumerate(self.block):
            if i == 0 or not self.shares_bias:
                bias = self.bias(i, length, keys)
                if mask is not None:
                    bias = bias + where(mask, 0.0, -math.inf).to(bias.dtype)
            x_BTD = block(x_BTD, bias, sources, cache)
        if cache is not None:
            cache.advance(length)
        return self.dropout(self.final_layer_norm(x_BTD))

    def bias(self, layer: int, queries: int, keys: int) -> Tensor:
        """Return what is added to the scores (1, H, T, S) of the last `queries` of `keys` positions."""
        table = self.block[layer].layer[0].part.relative_attention_bias
        return bucket_bias(table, queries, keys, bidirectional=not self.is_decoder, longest=self.longest)


class T5PretrainedModel(PretrainedModel):
    """The base of T5 with each of its heads.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    config_class = T5Config
    base_model_prefix = "transformer"

    def check_weights(self, source: str) -> None:
        if next(self.parameters()).dtype is dtypes.float16:
            raise ArgumentError(
                f"{source}: T5 in float16, whose range its hidden states exceed", hint="pass dtype=tl.bfloat16"
            )

    def reset_parameters(self) -> None:
        """Draw weights with the standard deviations of transformers."""
        if next(self.parameters()).device.type == "meta":
            return
        config = self.config
        width, inner = config.d_model**-0.5, (config.num_heads * config.d_kv) ** -0.5
        spread = {"q": width * config.d_kv**-0.5, "o": inner, "wo": config.d_ff**-0.5}
        spread |= dict.fromkeys(("shared", "embed_tokens", "lm_head"), 1.0)
        for name, module in self.named_modules():
            if isinstance(module, Linear | Embedding):
                std = spread.get(name.rpartition(".")[2], width)
                init.normal_(module.weight, 0.0, config.initializer_factor * std)
            if isinstance(module, Linear) and module.bias is not None:  # of a head
                init.zeros_(module.bias)

    def config_with(self, apart: Collection[str]) -> T5Config:
        return self.config.with_own(apart)

    def is_superfluous(self, name: str) -> bool:
        return name.endswith("EncDecAttention.relative_attention_bias.weight")  # a bias that is not used


class T5Module(T5PretrainedModel):
    """The base of T5 with and without a decoder.  Args: as T5PretrainedModel"""

    def __init__(self, config: T5Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.shared = Embedding(config.vocab_size, config.d_model, device=device, dtype=dtype)
        self.encoder = T5Stack(config, config.num_layers, device, dtype)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the hidden states (B, S, D) of texts.

        Args:    attention_mask: 1 or True for text, 0 or False for padding; None means no padding
        Shapes:  both (B, S), of integers
        """
        mask = None if attention_mask is None else key_mask(attention_mask)
        return self.encoder(self.embed(input_ids, self.encoder), mask)

    def embed(self, tokens: Tensor, stack: T5Stack) -> Tensor:
        """Return the embeddings (B, T, D) of tokens for the encoder or the decoder."""
        return (stack.embed_tokens or self.shared)(tokens)

    @property
    def tied_weights(self) -> Mapping[str, str]:
        return {"encoder.embed_tokens.weight": "shared.weight"}


class T5EncoderModel(T5Module):
    """The encoder of a T5: hidden states (B, S, D) of texts.  Args: as T5Module"""

    def __init__(self, config: T5Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """As `encode`"""
        return self.encode(input_ids, attention_mask)

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name.startswith(("decoder.", "lm_head."))


class T5PairModel(T5Module):
    """An encoder and a decoder without a head.  Args: as T5Module"""

    def __init__(self, config: T5Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        layers = config.num_decoder_layers or config.num_layers
        self.decoder = T5Stack(config, layers, device, dtype, is_decoder=True)

    def cross_keys(self, encoded_ASD: Tensor) -> list[CrossKeys]:
        """As `Seq2SeqLM.cross_keys`"""
        return [block.layer[1].part.keys_and_values(encoded_ASD) for block in self.decoder.block]

    def decode(self, tokens_BT: Tensor, sources: Sources, cache: KVCache | None = None) -> Tensor:
        """Return the hidden states (B, T, D) of texts. With a cache, the tokens follow those in it."""
        return self.decoder(self.embed(tokens_BT, self.decoder), None, sources, cache)

    @property
    def cache_shape(self) -> CacheShape:
        """The sizes of the decoder's cache."""
        return CacheShape(len(self.decoder.block), self.config.num_heads, self.config.d_kv)

    @property
    def context_length(self) -> int:
        """Positions are relative, so texts have any length."""
        return MAX_SIZE

    @property
    def tied_weights(self) -> Mapping[str, str]:
        return {**super().tied_weights, "decoder.embed_tokens.weight": "shared.weight"}


class T5ForConditionalGeneration(T5PairModel, Seq2SeqLM):
    """Turns text into text.  Args: as T5Module

    Example:
        model = T5ForConditionalGeneration.from_pretrained("google/flan-t5-small")
        loss = model(input_ids, attention_mask, labels=labels).loss
    """

    def __init__(self, config: T5Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        tied = config.tie_word_embeddings
        self.lm_head = None if tied else Linear(config.d_model, config.vocab_size, False, device, dtype)
        self.reset_parameters()

    def decode(self, tokens_BT: Tensor, sources: Sources, cache: KVCache | None = None) -> Tensor:
        hidden_BTD = super().decode(tokens_BT, sources, cache)
        return hidden_BTD * self.config.d_model**-0.5 if self.config.is_scaled else hidden_BTD

    @property
    def token_embedding(self) -> Embedding:
        return self.shared

    @property
    def tied_weights(self) -> Mapping[str, str]:  # whatever the config says, as in transformers 5
        return {**super().tied_weights, "lm_head.weight": "shared.weight"}

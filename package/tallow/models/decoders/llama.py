"""Llama: a decoder-only transformer with rotary positions, RMS norms, gated feed-forwards and grouped-query attention.

Loads llama2.c checkpoints (TinyStories and other small models) and Hugging Face folders of `LlamaForCausalLM`,
`LlamaModel`, and the heads for texts, tokens and answers.

Letters: B batch, T query positions, S key positions, D width, H query heads, G key/value heads, K head width,
F feed-forward width, V vocabulary.

Source:  Touvron et al. 2023, arXiv:2302.13971 and arXiv:2307.09288; names as in transformers' `modeling_llama.py`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.fused.eligibility import Kind, Pattern
from tallow.fused.steps import DecodeStep
from tallow.fused.weights import matrix, vector
from tallow.io import llama2c
from tallow.io.source import Source
from tallow.kernels.blocks.decode_block import Block, DecodeBlock
from tallow.models.activations import activation_named, gated
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.decoders.decoder import BothSides, DecoderModel
from tallow.models.decoders.llama_config import LlamaConfig as LlamaConfig
from tallow.nn import functional as F
from tallow.nn.attention import causal_attention, merge_heads, split_heads, two_sided_attention
from tallow.nn.block_layers import BlockEmbedding, BlockLinear
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.parameter import Parameter
from tallow.nn.rope_scaling import longest_text, unscaled_length
from tallow.nn.rotary import RotaryEmbedding, Unrotated

PRODUCTS = (Linear, BlockLinear)
MLP_NAMES = ("gate_proj", "up_proj", "down_proj")
TO_HEADS = ("q_proj", "k_proj", "v_proj")  # whose biases the fused block has


class LlamaAttention(Module):
    """Causal self-attention; G heads of keys and values serve H heads of queries."""

    scale: float | None = None  # of the scores; None as in `causal_attention`
    softcap: float | None = None
    sinks: Parameter | None  # as in `causal_attention`
    output_name: ClassVar[str] = "o_proj"
    head_norms: ClassVar[tuple[str, str]] = ("q_norm", "k_norm")  # the names of norms of heads, which some have
    has_gates: ClassVar[bool] = False  # whether `q_proj` has a gate after each head's query

    def __init__(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.window = config.window_of(layer)
        self.distance = config.distance_of(layer)
        self.num_heads = config.num_attention_heads
        self.num_kv_heads = config.num_key_value_heads
        self.dropout_p = config.attention_dropout
        self.register_parameter("sinks", None)
        self.add_projections(config, device, dtype)
        output = Linear(self.num_heads * config.head_width, config.hidden_size, config.output_bias, device, dtype)
        self.add_module(self.output_name, output)

    def add_projections(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        """Add the layers that `heads` applies."""
        width, bias = config.head_width, config.input_bias
        self.q_proj = Linear(config.hidden_size, self.num_heads * width, bias, device, dtype)
        self.k_proj = Linear(config.hidden_size, self.num_kv_heads * width, bias, device, dtype)
        self.v_proj = Linear(config.hidden_size, self.num_kv_heads * width, bias, device, dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (B, H, T, K), keys and values (B, G, T, K)."""
        return (
            split_heads(self.q_proj(x_BTD), self.num_heads),
            split_heads(self.k_proj(x_BTD), self.num_kv_heads),
            split_heads(self.v_proj(x_BTD), self.num_kv_heads),
        )

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        if isinstance(cache, BothSides):
            return self._encode(x_BTD, rotary, cache.mask(self.distance))
        return self.project(self.attend(*self.heads(x_BTD), rotary, cache))

    def attend(
        self, q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, rotary: RotaryEmbedding, cache: KVCache | None
    ) -> Tensor:
        """Return the mixed values of all heads, (B, T, H K), of queries, keys and values of new positions."""
        start, padding = (0, None) if cache is None else (cache.length, cache.padding)
        q_BHTK, k_BGSK = self.rotated(q_BHTK, k_BGSK, rotary, start, padding)
        lengths = masks = None
        if cache is not None:
            lengths, masks = cache.lengths(q_BHTK.shape[2]), cache.masks
            k_BGSK, v_BGSK = cache.append(self.layer, k_BGSK, v_BGSK)
        mixed_BHTK = causal_attention(
            q_BHTK,
            k_BGSK,
            v_BGSK,
            scale=self.scale,
            dropout_p=self.dropout_p if self.training else 0.0,
            softcap=self.softcap,
            sinks=self.sinks,
            window=self.window,
            lengths=lengths,
            masks=masks,
        )
        return merge_heads(mixed_BHTK)

    def project(self, mixed_BTE: Tensor) -> Tensor:
        """Return the output (B, T, D) from the mixed values of all heads."""
        return getattr(self, self.output_name)(mixed_BTE)

    def rotated(
        self, q_BHTK: Tensor, k_BGTK: Tensor, rotary: RotaryEmbedding, start: int = 0, padding: Any = None
    ) -> tuple[Tensor, Tensor]:
        """Return queries and keys with their positions, which begin at `start`; `padding` as in RotaryEmbedding."""
        return rotary(q_BHTK, start, padding), rotary(k_BGTK, start, padding)

    def _encode(self, x_BTD: Tensor, rotary: RotaryEmbedding, mask: Tensor | None) -> Tensor:
        q_BHTK, k_BGTK, v_BGTK = self.heads(x_BTD)
        mixed_BHTK = two_sided_attention(
            *self.rotated(q_BHTK, k_BGTK, rotary),
            v_BGTK,
            mask,
            scale=self.scale,
            dropout_p=self.dropout_p if self.training else 0.0,
            softcap=self.softcap,
        )
        return self.project(merge_heads(mixed_BHTK))


class LlamaMLP(Module):
    """down(activation(gate(x)) ⊙ up(x)).  Source: Shazeer 2020, arXiv:2002.05202, section 2

    Args:
        hidden: F; None means config.intermediate_size.
        names: of the three layers.
    """

    def __init__(
        self, config: LlamaConfig, device: Any, dtype: Any, hidden: int | None = None, names: Sequence[str] = MLP_NAMES
    ) -> None:
        super().__init__()
        width, hidden, bias = config.hidden_size, hidden or config.intermediate_size, config.feed_forward_bias
        self.names = gate, up, down = tuple(names)
        self.add_module(gate, Linear(width, hidden, bias, device, dtype))
        self.add_module(up, Linear(width, hidden, bias, device, dtype))
        self.add_module(down, Linear(hidden, width, bias, device, dtype))
        self.activation = activation_named(config.activation)

    def forward(self, x_BTD: Tensor) -> Tensor:
        gate, up, down = (getattr(self, name) for name in self.names)
        return down(gated(self.activation, gate(x_BTD), up(x_BTD)))


class LlamaDecoderLayer(Module):
    """Attention and feed-forward, each after a norm and added to its input."""

    attention_class: ClassVar[type[LlamaAttention]] = LlamaAttention
    mlp_class: ClassVar[Callable[..., Module]] = LlamaMLP
    mlp_name: ClassVar[str] = "mlp"
    norm_class: ClassVar[Callable[..., Module]] = RMSNorm

    def __init__(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.input_layernorm = self.new_norm(config, device, dtype)
        self.self_attn = self.attention_class(config, layer, device, dtype)
        self.post_attention_layernorm = self.new_norm(config, device, dtype)
        self.add_module(self.mlp_name, self.new_mlp(config, layer, device, dtype))

    @classmethod
    def new_norm(cls, config: LlamaConfig, device: Any, dtype: Any) -> Module:
        """Return a norm of D elements."""
        return cls.norm_class(config.hidden_size, config.norm_eps, device=device, dtype=dtype)

    def new_mlp(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> Module:
        """Return the feed-forward part of a layer."""
        return self.mlp_class(config, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        x_BTD = x_BTD + self.added(self.self_attn(self.input_layernorm(x_BTD), rotary, cache))
        return x_BTD + self.added(getattr(self, self.mlp_name)(self.post_attention_layernorm(x_BTD)))

    def added(self, x_BTD: Tensor) -> Tensor:
        """Return what attention or feed-forward adds to its input, from its result."""
        return x_BTD


class LlamaModel(DecoderModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).

    Args:    as DecoderModel
    """

    config_class = LlamaConfig
    base_model_prefix = "model"
    layer_class: ClassVar[Any] = LlamaDecoderLayer  # or another class with its `norm_class`, arguments and call
    norm_name: ClassVar[str] = "norm"
    rotary_class: ClassVar[type[RotaryEmbedding]] = RotaryEmbedding
    counts_from_text: ClassVar[bool] = False  # as `absolute` of RotaryEmbedding

    def __init__(self, config: LlamaConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self.layers = ModuleList(self.layer_class(config, i, device, dtype) for i in range(config.num_hidden_layers))
        norm = self.layer_class.norm_class(config.hidden_size, config.norm_eps, device=device, dtype=dtype)
        self.add_module(self.norm_name, norm)
        self.rotary_emb = self.rotary_class(
            config.rotary_width,
            config.rope_theta,
            interleaved=config.rope_interleaved,
            scaling=config.rope_scaling,
            context=config.max_position_embeddings,
            absolute=self.counts_from_text,
        )
        if not all(map(config.rotates, range(config.num_hidden_layers))):
            self.unrotated = Unrotated(config.rotary_width)
        self.reset_parameters()

    @property
    def token_embedding(self) -> Embedding:
        return self.embed_tokens

    @property
    def context_length(self) -> int:
        return longest_text(self.config.rope_scaling, self.config.max_position_embeddings)

    def embed(self, tokens_BT: Tensor) -> Tensor:
        """Return the embeddings (B, T, D) of tokens."""
        return self.embed_tokens(tokens_BT)

    def rotary_of(self, layer: int) -> RotaryEmbedding:
        """Return the rotary embedding of a layer."""
        return self.rotary_emb if self.config.rotates(layer) else self.unrotated

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD = self.embed(tokens_BT)
        for i, layer in enumerate(self.layers):
            x_BTD = layer(x_BTD, self.rotary_of(i), cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.final_norm(x_BTD)

    @property
    def final_norm(self) -> Module:
        """The norm after the layers."""
        return getattr(self, self.norm_name)


class Llama(CausalLM):
    """A language model; Hugging Face's `LlamaForCausalLM`.

    Args:    as DecoderModel

    Example:
        model = Llama.from_llama2c("stories260K.bin")
        for token in generate(model, [1], max_tokens=100): ...
    """

    model_class = LlamaModel
    model: LlamaModel

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(self.config.num_hidden_layers, self.config.num_key_value_heads, self.config.head_width)

    def extra_repr(self) -> str:
        shown = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
        return ", ".join(f"{name}={getattr(self.config, name)}" for name in shown)

    # ----------------------------------------------------------------------------------------------------- generation

    @property
    def windows(self) -> tuple[int | None, ...]:
        return tuple(layer.self_attn.window for layer in self.model.layers)

    @property
    def unscaled_length(self) -> int | None:
        return unscaled_length(self.config.rope_scaling, self.config.max_position_embeddings)

    @property
    def prefill_chunk(self) -> int | None:
        # The rotary angles of all keys depend on the length of the whole prompt, so it is not divided.
        return super().prefill_chunk if self.unscaled_length is None else None

    # -------------------------------------------------------------------------------------------------- fused decoding

    fused_biases: ClassVar[tuple[str, ...]] = TO_HEADS  # the ends of the names of layers whose biases the blocks have
    fused_pattern = Pattern(
        {
            LlamaModel: Kind(methods=("embed", "rotary_of", "decode")),
            LlamaDecoderLayer: Kind(),
            LlamaAttention: Kind(settings=("layer", "window"), dropout=("dropout_p",)),
            LlamaMLP: Kind(allowed={"activation": (F.silu,)}),
            Linear: Kind(),
            BlockLinear: Kind(settings=("format",)),
            BlockEmbedding: Kind(settings=("format",)),
            RMSNorm: Kind(settings=("eps",)),
            RotaryEmbedding: Kind(),
            Unrotated: Kind(),
            Embedding: Kind(),
            ModuleList: Kind(),
        }
    )

    def fused_limit(self, cache: KVCache) -> str | None:
        """Return why the fused blocks cannot continue a cache, or None: only projections to heads have biases, queries
        see all positions, and rotary angles do not depend on the length of the text."""
        for name, module in self.named_modules():
            if isinstance(module, PRODUCTS) and module.bias is not None and not name.endswith(self.fused_biases):
                return f"{name} has a bias, which the fused block does not take"
        for i, window in enumerate(self.windows):
            if window is not None and window < cache.capacity:
                return f"layer {i} sees a window of {window} positions, and the cache holds {cache.capacity}"
        if self.unscaled_length is not None and self.unscaled_length < cache.capacity:
            return f"rotary angles change after {self.unscaled_length} positions, and the cache holds {cache.capacity}"
        if self.unscaled_length is not None and cache.padding is not None:
            return "the cache has padding, before which rotary angles do not count"
        return super().fused_limit(cache)

    def fused_step(self, cache: KVCache) -> DecodeStep:
        inner = self.model
        eps = inner.final_norm.eps
        if eps is None or any(norm.eps != eps for norm in inner.modules() if isinstance(norm, RMSNorm)):
            raise ArgumentError("its norms have no eps, or several; the fused block has one")
        embedding = matrix(inner.embed_tokens)
        head = embedding if self.lm_head is None else matrix(self.lm_head)
        blocks = [self.fused_block(layer, i, cache, eps) for i, layer in enumerate(inner.layers)]
        return DecodeStep(embedding, blocks, cache, self.fused_norm(inner.final_norm), eps, head)

    def fused_block(self, layer: Any, index: int, cache: KVCache, eps: float) -> Block:
        """Return the block of a layer.

        Args:    index: of the layer in the model
        """
        norms, attention = self.fused_norms(layer), layer.self_attn
        memory = cache.layers[attention.layer]
        cos, sin = self.model.rotary_of(index).tables(memory.size, next(self.parameters()).device)
        return DecodeBlock(
            attention_norm=norms[0],
            query=matrix(attention.q_proj),
            key=matrix(attention.k_proj),
            value=matrix(attention.v_proj),
            output=matrix(getattr(attention, attention.output_name)),
            mlp_norm=norms[1],
            cos=cos,
            sin=sin,
            key_cache=memory.keys,
            value_cache=memory.values,
            eps=eps,
            interleaved=self.config.rope_interleaved,
            **self._fused_additions(attention),
            **self.fused_mlp(layer),
        )

    def _fused_additions(self, attention: Any) -> dict[str, Any]:
        """Return the arrays of a block that Qwen2's and Qwen3's attention have, by their arguments."""
        query_norm, key_norm = (getattr(attention, name, None) for name in attention.head_norms)
        return {
            "query_bias": vector(attention.q_proj.bias),
            "key_bias": vector(attention.k_proj.bias),
            "value_bias": vector(attention.v_proj.bias),
            "query_norm": query_norm and self.fused_norm(query_norm),
            "key_norm": key_norm and self.fused_norm(key_norm),
            "gated": attention.has_gates,
        }

    def fused_norms(self, layer: Any) -> tuple[Array, Array]:
        """Return the scales of a layer's norms, that before attention first."""
        return self.fused_norm(layer.input_layernorm), self.fused_norm(layer.post_attention_layernorm)

    def fused_norm(self, norm: Any) -> Array:
        """Return what an RMS norm multiplies by."""
        scale = vector(norm.weight)
        assert scale is not None
        return scale

    def fused_mlp(self, layer: Any) -> dict[str, Any]:
        """Return the arguments of a block for the feed-forward part of a layer."""
        mlp = getattr(layer, layer.mlp_name)
        return {name: matrix(getattr(mlp, part)) for name, part in zip(("gate", "up", "down"), mlp.names, strict=True)}

    # -------------------------------------------------------------------------------------------------------- loading

    @classmethod
    def from_llama2c(cls, source: Source, dtype: Any = None, device: Any = None) -> Llama:
        """Load a llama2.c checkpoint from a path, which is memory-mapped, or from a buffer, without a copy.

        Args:  dtype: of the parameters; None means float32, as in the file

        Raises:  CheckpointError
        """
        checkpoint = llama2c.load(source)
        config = LlamaConfig.from_llama2c(checkpoint.header)
        arrays = checkpoint.arrays
        state = {
            "model.embed_tokens.weight": arrays["token_embedding_table"],
            "model.norm.weight": arrays["rms_final_weight"],
        }
        if not config.tie_word_embeddings:
            state["lm_head.weight"] = arrays["wcls"]
        for layer in range(config.num_hidden_layers):
            for name, key in llama2c.LAYER_NAMES.items():
                state[f"model.layers.{layer}.{name}.weight"] = arrays[key][layer]
        return cls.assemble(config, {name: wrap(array) for name, array in state.items()}, dtype, device, "checkpoint")

"""Llama: a decoder-only transformer with rotary positions, RMS norms, gated feed-forwards and grouped-query attention.

Reads checkpoints of llama2.c (TinyStories and other small ones) and folders of Hugging Face's `LlamaForCausalLM`,
`LlamaModel`, and the heads for texts, tokens and answers.

Letters: B batch, T query positions, S key positions, D width, H query heads, G key/value heads, K head width,
F feed-forward width, V vocabulary.

Source:  Touvron et al. 2023, arXiv:2302.13971 and arXiv:2307.09288; names as in transformers' `modeling_llama.py`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallow import devices, dtypes, kernels
from tallow.cuda.graphs import CUDAGraph, graph
from tallow.dtypes import Array
from tallow.errors import ArgumentError, DimensionError
from tallow.io import llama2c
from tallow.io.source import Source
from tallow.kernels.decode_block import DecodeBlock, Matrix
from tallow.kernels.table import enabled
from tallow.models.activations import activation_named, gated
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.config import rope_entries, whole_heads
from tallow.models.decoder import DecoderConfig, DecoderModel
from tallow.models.decoder_heads import (
    DecoderForQuestionAnswering,
    DecoderForSequenceClassification,
    DecoderForTokenClassification,
)
from tallow.nn import functional as F
from tallow.nn.attention import causal_attention, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import RMSNorm
from tallow.nn.quantization import WeightOnlyLinear
from tallow.nn.rope_scaling import frequencies, longest_text, unscaled_length
from tallow.nn.rotary import RotaryEmbedding
from tallow.tensor import Tensor, wrap


@dataclass(frozen=True, kw_only=True)
class LlamaConfig(DecoderConfig):
    """The sizes of a Llama, in the names of Hugging Face's `config.json`, which `from_json` reads; as DecoderConfig.

    Attributes:
        head_dim: K; None means hidden_size / num_attention_heads.
        rope_interleaved: rotary pairs are neighbours, as llama2.c trains them; tallow's own, False in Hugging Face's.
        sliding_window: how many positions a query sees at most, itself included; None means all, as it always does in
            Hugging Face's Llama.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    max_position_embeddings: int = 2048
    head_dim: int | None = None
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: Mapping[str, Any] | None = None
    rope_interleaved: bool = False
    hidden_act: str = "silu"
    sliding_window: int | None = None
    attention_bias: bool = False
    attention_dropout: float = 0.0
    mlp_bias: bool = False

    model_types: ClassVar[tuple[str, ...]] = ("llama",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {"partial_rotary_factor": (1.0,)}
    neutral: ClassVar[frozenset[str]] = frozenset({"pretraining_tp"})  # how many parts a product is made of
    unread: ClassVar[frozenset[str]] = frozenset({"sliding_window"})

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation)
        self.require("rope_scaling", "a mapping or None", lambda value: isinstance(value, Mapping | None))
        self.require("head_dim", "an even integer or None", lambda value: value is None or value % 2 == 0)
        for name in ("rms_norm_eps", "rope_theta"):
            self.require(name, "a positive number", lambda value: value > 0)
        if self.head_dim is None and self.hidden_size % self.num_attention_heads:
            raise ArgumentError(
                f"LlamaConfig: {self.num_attention_heads} heads do not divide hidden_size={self.hidden_size}",
                mend="pass head_dim if the heads' widths add up to something else",
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ArgumentError(
                f"LlamaConfig: num_key_value_heads={self.num_key_value_heads} does not divide "
                f"num_attention_heads={self.num_attention_heads}"
            )
        # Refuses a scaling it does not have.
        frequencies(self.rotary_width, self.rope_theta, self.rope_scaling, self.max_position_embeddings)

    @property
    def activation(self) -> str:
        """Of the feed-forward parts."""
        return self.hidden_act

    def window_of(self, layer: int) -> int | None:
        """The sliding window of a layer."""
        return self.sliding_window

    @property
    def output_bias(self) -> bool:
        """Whether attention's last projection has a bias."""
        return self.attention_bias

    @property
    def head_width(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def rotary_width(self) -> int:
        """How many elements of a head are turned by its position, the first ones."""
        return self.head_width

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        # null is a head each, and so is no entry, unless the model has a number of its own.
        kv_heads = entries.get("num_key_value_heads", getattr(cls, "num_key_value_heads", None))
        entries["num_key_value_heads"] = entries.get("num_attention_heads") if kv_heads is None else kv_heads
        rope_entries(entries)
        if "partial_rotary_factor" in cls.computed:
            whole_heads(entries)
        super().prepare(entries)

    @classmethod
    def from_llama2c(cls, header: llama2c.Header) -> LlamaConfig:
        """What a llama2.c header says, and what `run.c` takes for granted. BOS ends a text too: it starts the next."""
        return cls(
            vocab_size=header.vocab_size,
            hidden_size=header.dim,
            intermediate_size=header.hidden_dim,
            num_hidden_layers=header.n_layers,
            num_attention_heads=header.n_heads,
            num_key_value_heads=header.n_kv_heads,
            max_position_embeddings=header.seq_len,
            rms_norm_eps=1e-5,
            rope_interleaved=True,
            tie_word_embeddings=header.shared_classifier,
            eos_token_id=(1, 2),
        )


class LlamaAttention(Module):
    """Causal self-attention; G heads of keys and values serve H heads of queries."""

    scale: float | None = None  # of the scores, and what they stay within: as `causal_attention`
    softcap: float | None = None

    def __init__(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.window = config.window_of(layer)
        self.num_heads = config.num_attention_heads
        self.num_kv_heads = config.num_key_value_heads
        self.dropout_p = config.attention_dropout
        self.add_projections(config, device, dtype)
        self.o_proj = Linear(self.num_heads * config.head_width, config.hidden_size, config.output_bias, device, dtype)

    def add_projections(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        """Make what `heads` applies."""
        width, bias = config.head_width, config.attention_bias
        self.q_proj = Linear(config.hidden_size, self.num_heads * width, bias, device, dtype)
        self.k_proj = Linear(config.hidden_size, self.num_kv_heads * width, bias, device, dtype)
        self.v_proj = Linear(config.hidden_size, self.num_kv_heads * width, bias, device, dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, T, K), keys and values (B, G, T, K)."""
        return (
            split_heads(self.q_proj(x_BTD), self.num_heads),
            split_heads(self.k_proj(x_BTD), self.num_kv_heads),
            split_heads(self.v_proj(x_BTD), self.num_kv_heads),
        )

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        start, padding = (0, None) if cache is None else (cache.length, cache.padding)
        q_BHTK, k_BGSK, v_BGSK = self.heads(x_BTD)
        q_BHTK, k_BGSK = rotary(q_BHTK, start, padding), rotary(k_BGSK, start, padding)
        lengths = masks = None
        if cache is not None:
            lengths, masks = cache.lengths(x_BTD.shape[1]), cache.masks
            k_BGSK, v_BGSK = cache.append(self.layer, k_BGSK, v_BGSK)
        mixed_BHTK = causal_attention(
            q_BHTK,
            k_BGSK,
            v_BGSK,
            scale=self.scale,
            dropout_p=self.dropout_p if self.training else 0.0,
            softcap=self.softcap,
            window=self.window,
            lengths=lengths,
            masks=masks,
        )
        return self.o_proj(merge_heads(mixed_BHTK))


class LlamaMLP(Module):
    """down(activation(gate(x)) ⊙ up(x)).  Source: Shazeer 2020, arXiv:2002.05202, section 2"""

    def __init__(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width, hidden, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = Linear(width, hidden, bias, device, dtype)
        self.up_proj = Linear(width, hidden, bias, device, dtype)
        self.down_proj = Linear(hidden, width, bias, device, dtype)
        self.activation = activation_named(config.activation)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down_proj(gated(self.activation, self.gate_proj(x_BTD), self.up_proj(x_BTD)))


class LlamaDecoderLayer(Module):
    """Attention and feed-forward, each after a norm and added to its input."""

    attention_class: ClassVar[type[LlamaAttention]] = LlamaAttention
    mlp_class: ClassVar[Callable[..., Module]] = LlamaMLP
    norm_class: ClassVar[type[RMSNorm]] = RMSNorm

    def __init__(self, config: LlamaConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.input_layernorm = self.norm_class(config.hidden_size, config.rms_norm_eps, device=device, dtype=dtype)
        self.self_attn = self.attention_class(config, layer, device, dtype)
        self.post_attention_layernorm = self.norm_class(
            config.hidden_size, config.rms_norm_eps, device=device, dtype=dtype
        )
        self.mlp = self.mlp_class(config, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), rotary, cache)
        return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))


class LlamaModel(DecoderModel):
    """The transformer without its head: hidden states (B, T, D) of tokens (B, T).

    Args:    as DecoderModel
    """

    config_class = LlamaConfig
    base_model_prefix = "model"
    layer_class: ClassVar[type[LlamaDecoderLayer]] = LlamaDecoderLayer

    def __init__(self, config: LlamaConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size, device=device, dtype=dtype)
        self.layers = ModuleList(self.layer_class(config, i, device, dtype) for i in range(config.num_hidden_layers))
        self.norm = self.layer_class.norm_class(config.hidden_size, config.rms_norm_eps, device=device, dtype=dtype)
        self.rotary_emb = RotaryEmbedding(
            config.rotary_width,
            config.rope_theta,
            interleaved=config.rope_interleaved,
            scaling=config.rope_scaling,
            context=config.max_position_embeddings,
        )
        self.reset_parameters()

    @property
    def token_embedding(self) -> Embedding:
        return self.embed_tokens

    @property
    def context_length(self) -> int:
        return longest_text(self.config.rope_scaling, self.config.max_position_embeddings)

    def embed(self, tokens_BT: Tensor) -> Tensor:
        return self.embed_tokens(tokens_BT)

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD = self.embed(tokens_BT)
        for layer in self.layers:
            x_BTD = layer(x_BTD, self.rotary_emb, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.norm(x_BTD)


class LlamaCache(KVCache):
    """A KVCache, and the short way through a model's layers for one token at a time, where the model allows it."""

    decoder: Decoder | None = None


class Llama(CausalLM):
    """A language model; Hugging Face's `LlamaForCausalLM`.

    Args:    as DecoderModel

    Example:
        model = Llama.from_llama2c("stories260K.bin")
        for token in generate(model, [1], max_tokens=100): ...
    """

    model_class = LlamaModel
    cache_class = LlamaCache
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
        """The longest text whose positions are turned as those of every shorter one; None where that holds of all."""
        return unscaled_length(self.config.rope_scaling, self.config.max_position_embeddings)

    @property
    def prefill_chunk(self) -> int | None:
        # All keys of a prompt are turned by the angles for its whole length.
        return super().prefill_chunk if self.unscaled_length is None else None

    def new_cache(self, **options: Any) -> KVCache:
        cache = super().new_cache(**options)
        assert isinstance(cache, LlamaCache)
        if cache.batch == 1 and cache.capacity and _is_plain(self, cache):
            cache.decoder = Decoder(self, cache)
        return cache

    def next_logits(self, tokens: Sequence[int], cache: LlamaCache) -> Array:
        if len(tokens) > 1 or cache.decoder is None or not cache.decoder.holds() or cache.batch > 1:
            return super().next_logits(tokens, cache)
        cache.reserve(1)
        if not cache.decoder.reads(cache):  # the cache has grown
            cache.decoder = Decoder(self, cache)
        if not 0 <= tokens[0] < self.vocab_size:
            raise DimensionError(f"token {tokens[0]} lies outside the vocabulary of {self.vocab_size}")
        return dtypes.cast(cache.decoder.next_logits(tokens[0], cache), dtypes.float32)

    # -------------------------------------------------------------------------------------------------------- loading

    @classmethod
    def from_llama2c(cls, source: Source, dtype: Any = None, device: Any = None) -> Llama:
        """Load a llama2.c checkpoint from a path, which is mapped, or from a buffer, which is viewed.

        Args:  dtype: float32, as in the file, if None

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
            for name, key in LLAMA2C_NAMES.items():
                state[f"model.layers.{layer}.{name}.weight"] = arrays[key][layer]
        return cls.assemble(config, {name: wrap(array) for name, array in state.items()}, dtype, device, "checkpoint")


class LlamaForSequenceClassification(DecoderForSequenceClassification):
    """Labels whole texts: logits (B, N).  Args: as DecoderForSequenceClassification"""

    model_class = LlamaModel


class LlamaForTokenClassification(DecoderForTokenClassification):
    """Labels every token: logits (B, T, N).  Args: as DecoderForTokenClassification"""

    model_class = LlamaModel


class LlamaForQuestionAnswering(DecoderForQuestionAnswering):
    """Finds where an answer starts and ends.  Args: as DecoderForQuestionAnswering"""

    model_class = LlamaModel
    base_model_prefix = "transformer"


LLAMA2C_NAMES = {
    "input_layernorm": "rms_att_weight",
    "self_attn.q_proj": "wq",
    "self_attn.k_proj": "wk",
    "self_attn.v_proj": "wv",
    "self_attn.o_proj": "wo",
    "post_attention_layernorm": "rms_ffn_weight",
    "mlp.gate_proj": "w1",
    "mlp.down_proj": "w2",
    "mlp.up_proj": "w3",
}


class Decoder:
    """One token through all layers by the "decode_block" kernel: a call per layer in place of some thirty ops.

    On a GPU, where its kernels take the blocks, the second token on replays a graph of the first: one launch a token.

    It reads the arrays that the parameters had when it was made. `holds` tells whether they still have them; writing
    into an array needs no such care.
    """

    def __init__(self, model: Llama, cache: KVCache) -> None:
        inner, config = model.model, model.config
        self._rooms = [(room.keys, room.values) for room in cache.layers]
        self._device = model.head_weight.device
        cos, sin = inner.rotary_emb.tables(cache.layers[0].size, self._device)
        self._sources = [(tensor, tensor.array) for tensor in (*model.parameters(), *model.buffers())]
        self.embedding = inner.embed_tokens.weight.array
        self._norm = _norm_weight(inner.norm)
        self._head = model.head_weight.array
        self._eps = config.rms_norm_eps
        self._blocks = [
            DecodeBlock(
                attention_norm=_norm_weight(layer.input_layernorm),
                query=_matrix(layer.self_attn.q_proj),
                key=_matrix(layer.self_attn.k_proj),
                value=_matrix(layer.self_attn.v_proj),
                output=_matrix(layer.self_attn.o_proj),
                mlp_norm=_norm_weight(layer.post_attention_layernorm),
                gate=_matrix(layer.mlp.gate_proj),
                up=_matrix(layer.mlp.up_proj),
                down=_matrix(layer.mlp.down_proj),
                cos=cos,
                sin=sin,
                key_cache=cache.layers[i].keys,
                value_cache=cache.layers[i].values,
                eps=config.rms_norm_eps,
                interleaved=config.rope_interleaved,
            )
            for i, layer in enumerate(inner.layers)
        ]
        self._graph: _DecodingGraph | None = None

    def holds(self) -> bool:
        """Whether every tensor of the model still has the array it had; `to`, for one, gives it another."""
        return all(tensor.array is array for tensor, array in self._sources)

    def reads(self, cache: KVCache) -> bool:
        """Whether the cache keeps its positions where it did."""
        return all(
            room.keys is keys and room.values is values
            for room, (keys, values) in zip(cache.layers, self._rooms, strict=True)
        )

    def next_logits(self, token: int, cache: KVCache) -> Array:
        """Append `token` to the cache; the logits (V,) of what follows."""
        if self._device.type == "cuda":
            self._graph = self._graph or _DecodingGraph(self, self._device)
            logits_V = self._graph.next_logits(token, cache.length)
        else:
            logits_V = self.logits(self.embedding[token], cache.length)
        cache.advance(1)
        return logits_V

    def logits(self, embedded_D: Array, position: int | Array) -> Array:
        """The logits (V,) of what follows a token, which goes to `position` of the cache."""
        x_D = dtypes.widen(embedded_D)
        for block in self._blocks:
            x_D = kernels.run("decode_block", x_D, block, position)
        return kernels.run("linear", kernels.run("rms_norm", x_D, self._norm, self._eps), self._head, None)

    def runs_alone(self, position: Array) -> bool:
        """Whether the device computes the blocks without asking the host for the position."""
        x_D = dtypes.widen(self.embedding[:1])
        return all(kernels.pick("decode_block", "cuda", x_D, b, position).backend == "cuda" for b in self._blocks)


class _DecodingGraph:
    """A Decoder's work on a GPU. Kernels read the token and the position from memory, so one graph does for all."""

    def __init__(self, decoder: Decoder, device: devices.device) -> None:
        self._decoder = decoder
        self._token, self._position = (devices.move(np.zeros(1, np.int64), device) for _ in range(2))
        self._at = 0  # what the position is on the device
        self._alone = decoder.runs_alone(self._position)
        self._captured: CUDAGraph | None = None
        self._logits_V: Array = None

    def next_logits(self, token: int, position: int) -> Array:
        self._token[0] = token
        if not (self._alone and enabled()):
            return self._decoder.logits(self._decoder.embedding[self._token], position)[0]
        if self._at != position:
            self._position[0] = self._at = position
        if self._captured is None:
            logits_V = self._compute()  # also compiles what is captured then
            captured = CUDAGraph()
            with graph(captured):
                self._logits_V = self._compute()
            self._captured = captured
        else:
            self._captured.replay()
            logits_V = self._logits_V.copy()  # the next replay overwrites them
        self._at += 1
        return logits_V

    def _compute(self) -> Array:
        logits_1V = self._decoder.logits(self._decoder.embedding[self._token], self._position)
        self._position += 1
        return logits_1V[0]


def _matrix(linear: Linear | WeightOnlyLinear) -> Matrix:
    return linear.matrix if isinstance(linear, WeightOnlyLinear) else linear.weight.array


def _norm_weight(norm: RMSNorm) -> Array:
    """The kernel wants it in float32, whatever the matrices are kept in."""
    assert norm.weight is not None
    return dtypes.widen(norm.weight.array)


def _is_plain(model: Llama, cache: KVCache) -> bool:
    """Whether the layers compute what the kernel does: no hooks, biases, replaced layers or dtypes it does not take,
    and every position seen under the same angles."""
    modules = [*model.model.modules(), *([] if model.lm_head is None else [model.lm_head])]
    if model.has_hooks() or any(not _is_of_llama(module) or module.has_hooks() for module in modules):
        return False
    if any(module.bias is not None for module in modules if isinstance(module, Linear | WeightOnlyLinear)):
        return False
    if any(window is not None and window < cache.capacity for window in model.windows):
        return False
    if model.unscaled_length is not None and model.unscaled_length < cache.capacity:
        return False
    dtypes_used = {parameter.dtype for parameter in model.parameters()}
    floats = {dtypes.float32, dtypes.float16, dtypes.bfloat16}
    return cache.dtype in floats and len(dtypes_used) == 1 and dtypes_used <= floats


def _is_of_llama(module: Module) -> bool:
    if type(module) is LlamaMLP:
        return module.activation is F.silu
    if isinstance(module, LlamaModel):  # or one of another name that does the same
        return type(module).embed is LlamaModel.embed and type(module).decode is LlamaModel.decode
    return type(module) in PLAIN


PLAIN = {LlamaDecoderLayer, LlamaAttention, ModuleList}
PLAIN |= {Embedding, Linear, RMSNorm, RotaryEmbedding, WeightOnlyLinear}

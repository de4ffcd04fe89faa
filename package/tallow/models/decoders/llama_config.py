"""The config of Llama, and of the models that differ from it in some terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.errors import ArgumentError
from tallow.io import llama2c
from tallow.models.activations import activation_named
from tallow.models.config import rope_entries, whole_heads
from tallow.models.decoders.decoder import DecoderConfig
from tallow.nn.rope_scaling import frequencies


@dataclass(frozen=True, kw_only=True)
class LlamaConfig(DecoderConfig):
    """The sizes of a Llama, named as in Hugging Face's `config.json`, which `from_json` reads; as DecoderConfig.

    Attributes:
        head_dim: K; None means hidden_size / num_attention_heads.
        rope_interleaved: rotary pairs are neighbours, as in llama2.c. Not in Hugging Face configs, where it is
            `files_interleave`.
        sliding_window: the most positions that a query sees, itself included; None means all, as always in Hugging
            Face's Llama.
        is_causal: False for a decoder that encodes texts: its positions see those on both sides, as far as the window.
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
    is_causal: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("llama",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {"partial_rotary_factor": (1.0,)}
    neutral: ClassVar[frozenset[str]] = frozenset({"pretraining_tp"})  # how many parts a product is computed in
    unread: ClassVar[frozenset[str]] = frozenset({"sliding_window"})
    files_interleave: ClassVar[bool] = False  # what rope_interleaved is in Hugging Face folders
    always_causal: ClassVar[bool] = False  # the model computes no positions that see those after them

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation)
        self.require("is_causal", "True", lambda value: value or not self.always_causal)
        self.require("rope_scaling", "a mapping or None", lambda value: isinstance(value, Mapping | None))
        self.require("head_dim", "an even integer or None", lambda value: value is None or value % 2 == 0)
        for name in ("rms_norm_eps", "rope_theta"):
            self.require(name, "a positive number", lambda value: value > 0)
        if self.head_dim is None:
            hint = "pass head_dim if the heads' widths add up to something else"
            self.check_heads("hidden_size", "num_attention_heads", hint=hint)
        if self.num_attention_heads % self.num_key_value_heads:
            raise ArgumentError(
                f"LlamaConfig: num_key_value_heads={self.num_key_value_heads} does not divide "
                f"num_attention_heads={self.num_attention_heads}"
            )
        # Raises for an unsupported scaling.
        frequencies(self.rotary_width, self.rope_theta, self.rope_scaling, self.max_position_embeddings)

    @property
    def activation(self) -> str:
        """The name of the activation of the feed-forward parts."""
        return self.hidden_act

    @property
    def sees_both_sides(self) -> bool:
        return not self.is_causal

    def distance_of(self, layer: int) -> int | None:
        """Return the distance to the furthest position that a layer sees, where it sees both sides; None for all."""
        return self.window_of(layer)

    def window_of(self, layer: int) -> int | None:
        """Return the sliding window of a layer; None for none."""
        return self.sliding_window

    @property
    def input_bias(self) -> bool:
        """True if the projections to queries, keys and values have biases."""
        return self.attention_bias

    @property
    def output_bias(self) -> bool:
        """True if the last projection of attention has a bias."""
        return self.attention_bias

    @property
    def feed_forward_bias(self) -> bool:
        """True if the feed-forward parts have biases."""
        return self.mlp_bias

    @property
    def head_width(self) -> int:
        """K"""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def rotary_width(self) -> int:
        """The number of elements of a head, the first ones, that rotate with the position."""
        return self.head_width

    @property
    def norm_eps(self) -> float:
        """The number that norms add to the mean of squares, or to the variance."""
        return self.rms_norm_eps

    def rotates(self, layer: int) -> bool:
        """Return whether queries and keys of a layer rotate with the position."""
        return True

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        # null means one key/value head per query head; so does a missing entry, unless the class has a default.
        kv_heads = entries.get("num_key_value_heads", getattr(cls, "num_key_value_heads", None))
        entries["num_key_value_heads"] = entries.get("num_attention_heads") if kv_heads is None else kv_heads
        rope_entries(entries)
        if not hasattr(cls, "partial_rotary_factor"):
            whole_heads(entries)
        super().prepare(entries)

    @classmethod
    def from_llama2c(cls, header: llama2c.Header) -> LlamaConfig:
        """Make a config from a llama2.c header and constants of `run.c`. BOS ends a text too: it starts the next."""
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


@dataclass(frozen=True, kw_only=True)
class UseBiasConfig(LlamaConfig):
    """The sizes of a Llama whose layers have biases all together, as LlamaConfig.

    Attributes:
        use_bias: whether all layers have biases.
    """

    use_bias: bool = False

    @property
    def input_bias(self) -> bool:
        return self.use_bias

    @property
    def output_bias(self) -> bool:
        return self.use_bias

    @property
    def feed_forward_bias(self) -> bool:
        return self.use_bias

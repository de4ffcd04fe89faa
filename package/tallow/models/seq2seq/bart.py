"""BART: an encoder that reads a text in both directions, and a decoder that writes another, such as its summary.

Loads Hugging Face folders of `BartForConditionalGeneration`.

Letters: B texts, T positions, A sources (B is a multiple of A), S positions of a source, D width, V vocabulary.

Source:  Lewis et al. 2019, arXiv:1910.13461; names as in transformers' `modeling_bart.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.apply import apply
from tallow.core.creation import arange, from_numpy, zeros
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import float32, float64
from tallow.errors import CheckpointError
from tallow.models.activations import activation_named
from tallow.models.causal_lm import CacheShape
from tallow.models.pretrained import PretrainedModel, check_length
from tallow.models.seq2seq.cross_layers import CausalAttention, CrossAttention, CrossKeys, CrossLayer, EncoderAttention
from tallow.models.seq2seq.model import Seq2SeqConfig, Seq2SeqLM, Sources
from tallow.nn.attention import key_mask
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.ops.joining import cat
from tallow.tape.modes import is_exporting

OFFSET = 2  # the first rows of the learned positions are not used
ROUNDING = 0.01  # of positions that a checkpoint repeats, in bfloat16 at the most
LONGEST_PERIOD = 10000  # of the sinusoids, in positions, over 2π


@dataclass(frozen=True, kw_only=True)
class BartConfig(Seq2SeqConfig):
    """The sizes of a BART, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        max_position_embeddings: the most tokens of a source, and of a text.
        scale_embedding: multiply token embeddings by √D.
        fixed_positions: positions are sinusoids, not weights.
        normalizes_positions: embeddings with positions are normalised.
        normalizes_input: parts of layers normalize their input, not their output, and a norm follows the layers.
        counts_text: the positions of a source count its text only, wherever the padding is.
        share_encoder_decoder_embeddings: the encoder and the decoder have one vocabulary, and one embedding.
    """

    d_model: int
    encoder_layers: int
    encoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_layers: int
    decoder_attention_heads: int
    decoder_ffn_dim: int
    max_position_embeddings: int = 1024
    activation_function: str = "gelu"
    scale_embedding: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    initializer_range: float = 0.02
    pad_token_id: int = 1
    decoder_start_token_id: int | None = 2
    eos_token_id: tuple[int, ...] = (2,)

    share_encoder_decoder_embeddings: ClassVar[bool] = True
    fixed_positions: ClassVar[bool] = False
    normalizes_positions: ClassVar[bool] = True
    normalizes_input: ClassVar[bool] = False
    counts_text: ClassVar[bool] = False
    model_types: ClassVar[tuple[str, ...]] = ("bart",)
    layer_counts: ClassVar[tuple[str, ...]] = ("encoder_layers", "decoder_layers")
    sees_both_sides: ClassVar[bool] = False  # as a decoder alone
    layer_shapes: ClassVar[None] = None
    computed: ClassVar = {
        "is_encoder_decoder": (True, False),  # False and True in folders of the decoder alone
        "is_decoder": (False, True),
        "normalize_embedding": (True,),
        **dict.fromkeys(("normalize_before", "add_final_layer_norm", "static_position_embeddings"), (False,)),
    }
    # Training with dropped layers, a size that repeats another, and what transformers ignores.
    neutral: ClassVar = frozenset(
        {
            *("encoder_layerdrop", "decoder_layerdrop", "classif_dropout", "num_hidden_layers"),
            *("add_bias_logits", "extra_pos_embeddings", "force_bos_token_to_be_generated", "save_step"),
        }
    )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries["initializer_range"] = entries.pop("init_std", None)

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation_function)
        self.check_heads("d_model", "encoder_attention_heads", "decoder_attention_heads")

    def sinusoids(self, length: int) -> npt.NDArray[np.float32]:
        """Return the fixed positions of the first `length` tokens, (length, D)."""
        return sinusoids(length, self.d_model)

    def computed_sinusoids(self, start: int, end: int) -> Tensor:
        """Return rows of `sinusoids`, computed by ops, for an exported graph: it has to know no length."""
        return _computed_sinusoids(start, end, self.d_model)


class BartLayer(CrossLayer):
    """The base of both kinds of layers."""

    def __init__(self, config: BartConfig, inner: int, device: Any, dtype: Any) -> None:
        super().__init__(config, inner, device, dtype)
        self.normalizes_input = config.normalizes_input

    def add(self, x_BTD: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x plus a part of the layer, with the norm before the part or after the sum."""
        return x_BTD + part(norm(x_BTD)) if self.normalizes_input else norm(x_BTD + part(x_BTD))


class BartEncoderLayer(BartLayer):
    """Self-attention and feed-forward, each added to its input, with a norm."""

    def __init__(self, config: BartConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, config.encoder_ffn_dim, device, dtype)
        sizes = config.d_model, config.encoder_attention_heads, config.attention_dropout, device, dtype
        self.self_attn = EncoderAttention(*sizes)

    def forward(self, x_ASD: Tensor, mask: Tensor | None) -> Tensor:
        x_ASD = self.add(x_ASD, self.self_attn_layer_norm, lambda x: self.dropout(self.self_attn(x, mask)))
        return self.add(x_ASD, self.final_layer_norm, self.inner)


class BartDecoderLayer(BartLayer):
    """Self-attention, cross-attention and feed-forward, each added to its input, with a norm."""

    def __init__(self, config: BartConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, config.decoder_ffn_dim, device, dtype)
        sizes = config.d_model, config.decoder_attention_heads, config.attention_dropout, device, dtype
        self.self_attn = CausalAttention(*sizes)
        self.encoder_attn = CrossAttention(*sizes)
        self.encoder_attn_layer_norm = LayerNorm(config.d_model, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, layer: int, sources: Sources | None, cache: KVCache | None) -> Tensor:
        x_BTD = self.add(x_BTD, self.self_attn_layer_norm, lambda x: self.dropout(self.self_attn(x, layer, cache)))
        if sources is not None:
            seen, mask = sources.layers[layer], sources.mask
            attend = lambda x: self.dropout(self.encoder_attn(x, seen, mask))  # noqa: E731
            x_BTD = self.add(x_BTD, self.encoder_attn_layer_norm, attend)
        return self.add(x_BTD, self.final_layer_norm, self.inner)


@lru_cache(4)
def sinusoids(length: int, width: int) -> npt.NDArray[np.float32]:
    """Return sines, then cosines, of each position, (length, width).

    Source:  Vaswani et al. 2017, arXiv:1706.03762, section 3.5; here they are not interleaved
    """
    angles = np.arange(length)[:, None] / LONGEST_PERIOD ** (np.arange(0, width, 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles[:, : width // 2])], axis=1, dtype=np.float32)


def _computed_sinusoids(start: int, end: int, width: int) -> Tensor:
    """Return rows of `sinusoids`, computed by ops, for an exported graph: it has to know no length."""
    positions = arange(start, end, dtype=float64, device=devices.CPU)
    angles = positions[:, None] / from_numpy(LONGEST_PERIOD ** (np.arange(0, width, 2) / width))
    return apply(cat, [angles.sin(), angles[:, : width // 2].cos()], 1).to(float32)


class BartStack(Module):
    """The layers of the encoder or the decoder, after embeddings of positions and a norm.

    Attributes:
        embed_tokens: its own embedding of tokens; None means that of the model.
    """

    def __init__(self, config: BartConfig, layers: Iterable[Module], device: Any, dtype: Any) -> None:
        super().__init__()
        self.embed_tokens: Embedding | None = None
        self.embed_positions: Embedding | None = None
        self.config = config
        width, factory = config.d_model, {"device": device, "dtype": dtype}
        if not config.fixed_positions:
            self.embed_positions = Embedding(config.max_position_embeddings + OFFSET, width, **factory)
        self.layernorm_embedding = LayerNorm(width, **factory) if config.normalizes_positions else None
        self.layer_norm = LayerNorm(width, **factory) if config.normalizes_input else None
        self.layers = ModuleList(layers)
        self.dropout = Dropout(config.dropout)

    def embed(self, x_BTD: Tensor, start: int, mask: Tensor | None = None) -> Tensor:
        """Return embeddings of tokens with those of their positions, which begin at `start`.

        Args:    mask: of keys, where positions count text only
        """
        x_BTD = x_BTD + self.positions(x_BTD, start, mask)
        return self.dropout(x_BTD if self.layernorm_embedding is None else self.layernorm_embedding(x_BTD))

    def positions(self, x_BTD: Tensor, start: int, mask: Tensor | None) -> Tensor:
        """Return the embeddings of positions, (T, D) or (B, T, D)."""
        end = start + x_BTD.shape[1]
        if self.embed_positions is not None:
            return self.embed_positions.weight[start + OFFSET : end + OFFSET]
        if is_exporting():
            rows_TD = self.config.computed_sinusoids(start, end).to(x_BTD.device)
        else:
            table = self.config.sinusoids(1 << end.bit_length())
            rows_TD = wrap(devices.move(table[start:end], x_BTD.device))
        rows_TD = rows_TD.to(x_BTD.dtype)
        if mask is None or not self.config.counts_text:
            return rows_TD
        seen_BT = mask[:, 0, 0]
        return rows_TD[(seen_BT.cumsum(1) - 1).clamp(min=0)] * seen_BT.unsqueeze(-1)

    def finish(self, x_BTD: Tensor) -> Tensor:
        """Return the output of the layers, normalised if the stack has a norm."""
        return x_BTD if self.layer_norm is None else self.layer_norm(x_BTD)


class BartEncoder(BartStack):
    """The encoder."""

    def forward(self, x_ASD: Tensor, mask: Tensor | None) -> Tensor:
        x_ASD = self.embed(x_ASD, 0, mask)
        for layer in self.layers:
            x_ASD = layer(x_ASD, mask)
        return self.finish(x_ASD)


class BartDecoder(BartStack):
    """The decoder."""

    def forward(self, x_BTD: Tensor, sources: Sources | None, cache: KVCache | None) -> Tensor:
        length = x_BTD.shape[1]
        x_BTD = self.embed(x_BTD, 0 if cache is None else cache.length)
        for i, layer in enumerate(self.layers):
            x_BTD = layer(x_BTD, i, sources, cache)
        if cache is not None:
            cache.advance(length)
        return self.finish(x_BTD)


class BartModel(Module):
    """The encoder and the decoder, named as in checkpoints."""

    def __init__(self, config: BartConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        encoding = (BartEncoderLayer(config, device, dtype) for _ in range(config.encoder_layers))
        decoding = (BartDecoderLayer(config, device, dtype) for _ in range(config.decoder_layers))
        self.encoder = BartEncoder(config, encoding, device, dtype)
        self.decoder = BartDecoder(config, decoding, device, dtype)
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

        def table(size: int) -> Embedding:
            return Embedding(size, config.d_model, config.pad_token_id, device=device, dtype=dtype)

        shared = config.share_encoder_decoder_embeddings
        self.shared = table(config.vocab_size) if shared else None
        if not shared or "encoder" in config.own_tables:
            self.encoder.embed_tokens = table(config.vocab_size)
        if not shared or "decoder" in config.own_tables:
            self.decoder.embed_tokens = table(config.text_vocab_size)

    def embed(self, tokens_BT: Tensor, stack: BartStack) -> Tensor:
        """Return the embeddings (B, T, D) of tokens for the encoder or the decoder."""
        table: Any = stack.embed_tokens or self.shared
        x_BTD = table(tokens_BT)
        return x_BTD if self.scale == 1 else x_BTD * self.scale


class BartPretrainedModel(PretrainedModel):
    """The base of BART with each of its heads.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    config_class = BartConfig
    base_model_prefix = "model"

    def __init__(self, config: BartConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.model = BartModel(config, device, dtype)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """As `Seq2SeqLM.encode`"""
        check_length(input_ids.shape[1], self.context_length)
        mask = None if attention_mask is None else key_mask(attention_mask)
        return self.model.encoder(self.model.embed(input_ids, self.model.encoder), mask)

    def cross_keys(self, encoded_ASD: Tensor) -> list[CrossKeys]:
        """As `Seq2SeqLM.cross_keys`"""
        return [layer.encoder_attn.keys_and_values(encoded_ASD) for layer in self.model.decoder.layers]

    def decode(self, tokens_BT: Tensor, sources: Sources, cache: KVCache | None = None) -> Tensor:
        """As `Seq2SeqLM.decode`"""
        check_length(tokens_BT.shape[1] + (0 if cache is None else cache.length), self.context_length)
        return self.model.decoder(self.model.embed(tokens_BT, self.model.decoder), sources, cache)

    @property
    def cache_shape(self) -> CacheShape:
        """The sizes of the decoder's cache."""
        heads = self.config.decoder_attention_heads
        return CacheShape(self.config.decoder_layers, heads, self.config.d_model // heads)

    @property
    def context_length(self) -> int:
        """The most positions of a source, and of a text."""
        return self.config.max_position_embeddings

    @property
    def tied_weights(self) -> Mapping[str, str]:
        if not self.config.share_encoder_decoder_embeddings:
            return {}
        tables = ("model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight")
        return dict.fromkeys(tables, "model.shared.weight")

    def config_with(self, apart: Collection[str]) -> BartConfig:
        return self.config.with_own(apart)

    def is_superfluous(self, name: str) -> bool:
        return name.endswith("coder.version")  # marks of old versions


class BartForConditionalGeneration(BartPretrainedModel, Seq2SeqLM):
    """Turns text into text.  Args: as BartPretrainedModel

    Example:
        model = BartForConditionalGeneration.from_pretrained("facebook/bart-large-cnn")
        print("".join(model.generate_text(article)))
    """

    def __init__(self, config: BartConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        vocabulary = config.text_vocab_size
        tied = config.tie_word_embeddings
        self.lm_head = None if tied else Linear(config.d_model, vocabulary, False, device, dtype)
        self.register_buffer("final_logits_bias", zeros(1, vocabulary, device=device, dtype=dtype))
        self.reset_parameters()

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return super().logits(hidden_BTD) + self.final_logits_bias

    @property
    def token_embedding(self) -> Embedding:
        table: Any = self.model.shared or self.model.decoder.embed_tokens
        return table

    def adapt(self, state: Mapping[str, Any]) -> dict[str, Any]:
        adapted = without_computed_positions(self.config, state)
        names = ("model.shared.weight", "model.decoder.embed_tokens.weight")
        tables = [adapted[name] for name in names if name in adapted]
        if tables and "final_logits_bias" not in adapted:  # a checkpoint without a head has none
            adapted["final_logits_bias"] = zeros(1, self.config.text_vocab_size, dtype=tables[0].dtype)
        return adapted

    @property
    def tied_weights(self) -> Mapping[str, str]:
        shared = self.config.share_encoder_decoder_embeddings
        table = "model.shared.weight" if shared else "model.decoder.embed_tokens.weight"
        head = {"lm_head.weight": table} if self.config.tie_word_embeddings else {}
        return {**head, **super().tied_weights}


def without_computed_positions(config: BartConfig, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return weights without the positions that a model computes.  Raises: CheckpointError for others"""
    kept = dict(state)
    parts = ("model.encoder", "model.decoder", "encoder", "decoder") if config.fixed_positions else ()
    for part in parts:  # in a file without a head too
        for name in (f"{part}.embed_positions.weight", f"{part}.embed_positions.weights"):
            if (positions := kept.pop(name, None)) is None:
                continue
            computed = config.sinusoids(config.max_position_embeddings)
            table = positions.float().cpu().array[-len(computed) :]
            if table.shape != computed.shape or not np.allclose(table, computed, atol=ROUNDING):
                raise CheckpointError(
                    f"{name} are not the sinusoids that the model has", hint="the model has no learned positions"
                )
    return kept

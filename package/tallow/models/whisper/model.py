"""Whisper: an encoder that hears thirty seconds of sound, and a decoder that writes what was said.

Loads folders of Hugging Face's `WhisperForConditionalGeneration`, and files of OpenAI's and of whisper.cpp.

Letters: B batch, T positions, S positions of the sound, A sounds (B is a multiple of A), D width, H heads,
K head width, M mel bins, V vocabulary.

Source:  Radford et al. 2022, arXiv:2212.04356; names as in transformers' `modeling_whisper.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tallow import devices, dtypes
from tallow.audio.mel import WINDOW_FRAMES
from tallow.autograd.modes import no_grad
from tallow.errors import ArgumentError, ShapeError, TokenizerError
from tallow.models.activations import activation_named
from tallow.models.config import Config, read_entries
from tallow.models.pretrained import PretrainedModel, check_length
from tallow.models.whisper import checkpoint
from tallow.models.whisper.alignment import published_heads
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.attention import causal_attention, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv1d
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.tensor import Tensor, wrap
from tallow.text.whisper import WhisperTokenizer

GENERATION = "generation_config.json"
LONGEST_PERIOD = 10000  # of the sinusoids, in positions, over 2π


@dataclass(frozen=True, kw_only=True)
class WhisperConfig(Config):
    """The sizes of a Whisper, in the names of Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        max_source_positions: S, half the frames of the spectrogram.
        max_target_positions: the most tokens that the decoder reads.
        tie_word_embeddings: the embedding of tokens is the matrix of the logits too.
    """

    vocab_size: int
    num_mel_bins: int
    d_model: int
    encoder_layers: int
    encoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_layers: int
    decoder_attention_heads: int
    decoder_ffn_dim: int
    max_source_positions: int = WINDOW_FRAMES // 2
    max_target_positions: int = 448
    activation_function: str = "gelu"
    tie_word_embeddings: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    initializer_range: float = 0.02

    model_types: ClassVar[tuple[str, ...]] = ("whisper",)
    layer_counts: ClassVar[tuple[str, ...]] = ("encoder_layers", "decoder_layers")
    computed: ClassVar = {"is_encoder_decoder": (True,)}
    # Of training with noised spectrograms and with layers left out, of a head for classes, of transformers' own
    # generation, sizes that say the same as others, and a scale that transformers reads and does not apply.
    neutral: ClassVar = frozenset(
        {
            *("apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob"),
            *("mask_feature_length", "mask_feature_min_masks", "use_weighted_layer_sum", "classifier_proj_size"),
            *("num_hidden_layers", "median_filter_width", "encoder_layerdrop", "decoder_layerdrop"),
            *("forced_decoder_ids", "lang_to_id", "task_to_id", "scale_embedding"),
        }
    )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        entries["initializer_range"] = entries.pop("init_std", None)

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation_function)
        for heads in (self.encoder_attention_heads, self.decoder_attention_heads):
            if self.d_model % heads:
                raise ArgumentError(f"WhisperConfig: {heads} heads do not divide d_model={self.d_model}")


class CrossKeys(NamedTuple):
    """What one layer of the decoder asks of the sounds: computed once for all tokens.

    Shapes:  (A, H, S, K)
    """

    keys: Tensor
    values: Tensor


@dataclass
class Heard:
    """Sounds as the decoder attends to them.

    Attributes:
        layers: of the decoder.
        scores: where it is a list, each layer appends what its queries have in common with the sound, (B, H, T, S),
            before the softmax; for one sound, or as many as there are rows.
    """

    layers: list[CrossKeys]
    scores: list[Tensor] | None = None


class WhisperAttention(Module):
    """The projections of attention; the keys have no bias."""

    def __init__(self, width: int, heads: int, dropout_p: float, device: Any, dtype: Any) -> None:
        super().__init__()
        self.num_heads = heads
        self.k_proj = Linear(width, width, bias=False, device=device, dtype=dtype)
        self.v_proj = Linear(width, width, device=device, dtype=dtype)
        self.q_proj = Linear(width, width, device=device, dtype=dtype)
        self.out_proj = Linear(width, width, device=device, dtype=dtype)
        self.dropout_p = dropout_p

    @property
    def dropout(self) -> float:
        return self.dropout_p if self.training else 0.0

    def query(self, x_BTD: Tensor) -> Tensor:
        return split_heads(self.q_proj(x_BTD), self.num_heads)

    def keys_and_values(self, x_BTD: Tensor) -> CrossKeys:
        return CrossKeys(*(split_heads(project(x_BTD), self.num_heads) for project in (self.k_proj, self.v_proj)))


class WhisperEncoderAttention(WhisperAttention):
    """Every position of the sound sees all others."""

    def forward(self, x_BSD: Tensor) -> Tensor:
        keys, values = self.keys_and_values(x_BSD)
        mixed_BHSK = F.scaled_dot_product_attention(self.query(x_BSD), keys, values, dropout_p=self.dropout)
        return self.out_proj(merge_heads(mixed_BHSK))


class WhisperSelfAttention(WhisperAttention):
    """Every token sees those before it."""

    def forward(self, x_BTD: Tensor, layer: int, cache: KVCache | None) -> Tensor:
        keys, values = self.keys_and_values(x_BTD)
        if cache is not None:
            keys, values = cache.append(layer, keys, values)
        return self.out_proj(merge_heads(causal_attention(self.query(x_BTD), keys, values, dropout_p=self.dropout)))


class WhisperCrossAttention(WhisperAttention):
    """Every token sees all of its sound. Rows of the batch that hear the same one share its keys."""

    def forward(self, x_BTD: Tensor, heard: CrossKeys, scores: list[Tensor] | None) -> Tensor:
        q_BHTK = self.query(x_BTD)
        if scores is not None:
            scores.append(q_BHTK @ heard.keys.mT * q_BHTK.shape[-1] ** -0.5)
        batch, heads, length, head_dim = q_BHTK.shape
        sounds = heard.keys.shape[0]
        # The rows of one sound stand after each other as if they were one long row of queries.
        q_AHNK = q_BHTK.reshape(sounds, batch // sounds, heads, length, head_dim).transpose(1, 2)
        q_AHNK = q_AHNK.reshape(sounds, heads, -1, head_dim)
        mixed_AHNK = F.scaled_dot_product_attention(q_AHNK, heard.keys, heard.values, dropout_p=self.dropout)
        mixed = mixed_AHNK.reshape(sounds, heads, batch // sounds, length, head_dim).transpose(1, 2)
        return self.out_proj(merge_heads(mixed.reshape(batch, heads, length, head_dim)))


class WhisperLayer(Module):
    """What layers of both sides have: the part that works on each position by itself."""

    def __init__(self, config: WhisperConfig, inner: int, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn_layer_norm = LayerNorm(config.d_model, **factory)
        self.fc1 = Linear(config.d_model, inner, **factory)
        self.fc2 = Linear(inner, config.d_model, **factory)
        self.final_layer_norm = LayerNorm(config.d_model, **factory)
        self.activation = activation_named(config.activation_function)
        self.dropout = Dropout(config.dropout)
        self.activation_dropout = Dropout(config.activation_dropout)

    def feed_forward(self, x_BTD: Tensor) -> Tensor:
        inner = self.activation_dropout(self.activation(self.fc1(self.final_layer_norm(x_BTD))))
        return x_BTD + self.dropout(self.fc2(inner))


class WhisperEncoderLayer(WhisperLayer):
    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, config.encoder_ffn_dim, device, dtype)
        self.self_attn = WhisperEncoderAttention(
            config.d_model, config.encoder_attention_heads, config.attention_dropout, device, dtype
        )

    def forward(self, x_BSD: Tensor) -> Tensor:
        return self.feed_forward(x_BSD + self.dropout(self.self_attn(self.self_attn_layer_norm(x_BSD))))


class WhisperDecoderLayer(WhisperLayer):
    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, config.decoder_ffn_dim, device, dtype)
        sizes = config.d_model, config.decoder_attention_heads, config.attention_dropout, device, dtype
        self.self_attn = WhisperSelfAttention(*sizes)
        self.encoder_attn = WhisperCrossAttention(*sizes)
        self.encoder_attn_layer_norm = LayerNorm(config.d_model, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, layer: int, heard: Heard, cache: KVCache | None) -> Tensor:
        x_BTD = x_BTD + self.dropout(self.self_attn(self.self_attn_layer_norm(x_BTD), layer, cache))
        mixed_BTD = self.encoder_attn(self.encoder_attn_layer_norm(x_BTD), heard.layers[layer], heard.scores)
        return self.feed_forward(x_BTD + self.dropout(mixed_BTD))


class WhisperEncoder(Module):
    """Two convolutions, of which the second halves the frames, then layers of attention."""

    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.conv1 = Conv1d(config.num_mel_bins, config.d_model, 3, padding=1, **factory)
        self.conv2 = Conv1d(config.d_model, config.d_model, 3, stride=2, padding=1, **factory)
        self.embed_positions = Embedding(config.max_source_positions, config.d_model, **factory)
        self.layers = ModuleList(WhisperEncoderLayer(config, device, dtype) for _ in range(config.encoder_layers))
        self.layer_norm = LayerNorm(config.d_model, **factory)
        self.dropout = Dropout(config.dropout)

    def forward(self, mel_BMT: Tensor) -> Tensor:
        """Hear spectrograms.

        Shapes:  (B, M, 2 S) -> (B, S, D)
        Raises:  ShapeError for another number of mel bins or frames
        """
        bins, frames = self.conv1.in_channels, 2 * self.embed_positions.num_embeddings
        if mel_BMT.ndim != 3 or tuple(mel_BMT.shape[1:]) != (bins, frames):
            raise ShapeError(f"a spectrogram of shape {tuple(mel_BMT.shape)}; the model hears (B, {bins}, {frames})")
        x_BDS = F.gelu(self.conv2(F.gelu(self.conv1(mel_BMT.to(self.conv1.weight.dtype)))))
        x_BSD = self.dropout(x_BDS.mT.contiguous() + self.embed_positions.weight)
        for layer in self.layers:
            x_BSD = layer(x_BSD)
        return self.layer_norm(x_BSD)


class WhisperDecoder(Module):
    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.embed_tokens = Embedding(config.vocab_size, config.d_model, **factory)
        self.embed_positions = Embedding(config.max_target_positions, config.d_model, **factory)
        self.layers = ModuleList(WhisperDecoderLayer(config, device, dtype) for _ in range(config.decoder_layers))
        self.layer_norm = LayerNorm(config.d_model, **factory)
        self.dropout = Dropout(config.dropout)

    def listen(self, audio_ASD: Tensor) -> Heard:
        """What the layers ask of encoded sounds, head after head, as every token reads them."""
        asked = (layer.encoder_attn.keys_and_values(audio_ASD) for layer in self.layers)
        return Heard([CrossKeys(keys.contiguous(), values.contiguous()) for keys, values in asked])

    def forward(self, tokens_BT: Tensor, heard: Heard, cache: KVCache | None = None) -> Tensor:
        """What the head reads, (B, T, D). With a cache, the tokens follow those it has seen, and are appended."""
        start = 0 if cache is None else cache.length
        end, limit = start + tokens_BT.shape[1], self.embed_positions.num_embeddings
        check_length(end, limit)
        x_BTD = self.dropout(self.embed_tokens(tokens_BT) + self.embed_positions.weight[start:end])
        for i, layer in enumerate(self.layers):
            x_BTD = layer(x_BTD, i, heard, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.layer_norm(x_BTD)


class WhisperModel(Module):
    """The encoder and the decoder, under the name that checkpoints have for them."""

    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.encoder = WhisperEncoder(config, device, dtype)
        self.decoder = WhisperDecoder(config, device, dtype)


class Whisper(PretrainedModel):
    """Speech to text. `tallow.models.whisper.transcribe` makes texts of files with it, `decode` of thirty seconds.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they have no memory, for `load_state_dict(assign=True)`.

    Example:
        model = Whisper.from_pretrained("openai/whisper-tiny")
        print(transcribe(model, "talk.mp3").text)
    """

    config_class = WhisperConfig
    base_model_prefix = "model"

    def __init__(self, config: WhisperConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.model = WhisperModel(config, device, dtype)
        tied = config.tie_word_embeddings
        self.proj_out = None if tied else Linear(config.d_model, config.vocab_size, False, device, dtype)
        self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        dtype: Any = None,
        device: Any = None,
        *,
        revision: str | None = None,
        token: str | None = None,
    ) -> Self:
        """Load a folder of Hugging Face's, a repository of its Hub, OpenAI's `.pt`, or whisper.cpp's ggml `.bin`.

        Args:    as the other models'; `name` may be a file
        Raises:  as theirs
        """
        path = Path(name).expanduser()
        if not path.is_file():
            return super().from_pretrained(name, dtype, device, revision=revision, token=token)
        entries, state, tokenizer = checkpoint.load(path)
        model = cls.assemble(cls.config_class.from_entries(entries, str(path)), state, dtype, device, str(path))
        model.folder = path.parent
        if tokenizer is not None:
            model.tokenizer = tokenizer
        if (heads := published_heads(model.config)) is not None:
            model.alignment_heads = heads
        return model

    def forward(self, mel_AMT: Tensor, tokens_BT: Tensor) -> Tensor:
        """Logits of the next token for each position.

        Shapes:  mel (A, M, 2 S), tokens (B, T) -> (B, T, V); B is a multiple of A
        """
        return self.logits(self.decoder(tokens_BT, self.decoder.listen(self.encoder(mel_AMT))))

    @property
    def encoder(self) -> WhisperEncoder:
        return self.model.encoder

    @property
    def decoder(self) -> WhisperDecoder:
        return self.model.decoder

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        return F.linear(hidden_BTD, self.head_weight)

    @property
    def head_weight(self) -> Tensor:
        """(V, D): of a head of its own, or the embedding of tokens."""
        return self.decoder.embed_tokens.weight if self.proj_out is None else self.proj_out.weight

    def new_cache(self, batch: int = 1) -> KVCache:
        """An empty cache for the decoder."""
        config, weight = self.config, self.decoder.embed_tokens.weight
        heads = config.decoder_attention_heads
        widened = weight.device.type == "cpu" and weight.dtype is not dtypes.float64
        return KVCache(
            config.decoder_layers,
            batch,
            heads,
            config.max_target_positions,
            config.d_model // heads,
            growing=True,
            dtype=dtypes.float32 if widened else weight.dtype,
            device=weight.device,
        )

    @cached_property
    def tokenizer(self) -> WhisperTokenizer:
        """Of the folder that the model was loaded from, read when it is first asked for; or what it is set to.

        Raises:  TokenizerError when there is none
        """
        if self.folder is None:
            raise TokenizerError(
                "the model was not loaded from a folder, so it has no tokenizer",
                mend="set one: model.tokenizer = WhisperTokenizer.from_pretrained(folder, vocab_size)",
            )
        return WhisperTokenizer.from_pretrained(self.folder, self.config.vocab_size)

    @cached_property
    def alignment_heads(self) -> tuple[tuple[int, int], ...]:
        """The heads of the decoder, as (layer, head), that look at the sound where the next word is: those that
        `generation_config.json` names; of a single file of the size of OpenAI's, theirs; or else all of the upper half.
        """
        path = self.folder / GENERATION if self.folder is not None else None
        named = read_entries(path).get("alignment_heads") if path is not None and path.exists() else None
        layers, heads = self.config.decoder_layers, self.config.decoder_attention_heads
        if isinstance(named, list):
            pairs = tuple((int(layer), int(head)) for layer, head in named)
            if all(0 <= layer < layers and 0 <= head < heads for layer, head in pairs):
                return pairs
            raise ArgumentError(f"{path}: alignment_heads={named} of a model of {layers} layers, {heads} heads")
        return tuple((layer, head) for layer in range(layers // 2, layers) for head in range(heads))

    def reset_parameters(self) -> None:
        """As the base, convolutions too; the positions of the sound are sinusoids."""
        super().reset_parameters()
        positions = self.encoder.embed_positions.weight
        if positions.device.type == "meta":
            return
        for convolution in (self.encoder.conv1, self.encoder.conv2):
            init.normal_(convolution.weight, 0.0, self.config.initializer_range)
            if convolution.bias is not None:
                init.zeros_(convolution.bias)
        with no_grad():
            positions.copy_(wrap(devices.move(sinusoids(*positions.shape), positions.device)))

    def is_superfluous(self, name: str) -> bool:
        return name == "proj_out.weight"  # the embedding of tokens


def sinusoids(length: int, width: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Sines, then cosines, of each position, with periods from 2π to 2π · 10000.  Shapes: (length, width)

    Source:  Vaswani et al. 2017, arXiv:1706.03762, section 3.5; here the two kinds are not interleaved
    """
    rates = LONGEST_PERIOD ** -(np.arange(width // 2) / max(width // 2 - 1, 1))
    angles = np.arange(length)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1, dtype=np.float32)

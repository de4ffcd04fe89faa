"""Whisper: an encoder for thirty seconds of sound, and a decoder that writes what was said.

Loads Hugging Face folders of `WhisperForConditionalGeneration`, and files of OpenAI and of whisper.cpp.

Letters: B batch, T positions, S positions of the sound, A sounds (B is a multiple of A), D width, H heads,
K head width, M mel bins, V vocabulary.

Source:  Radford et al. 2022, arXiv:2212.04356; names as in transformers' `modeling_whisper.py`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tallow import devices, dtypes
from tallow.audio.mel import WINDOW_FRAMES
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, ShapeError, TokenizerError
from tallow.fused.decoder import FusedDecoder
from tallow.fused.eligibility import Blocks, Kind, Pattern, why_not
from tallow.fused.explanation import LayerReport
from tallow.fused.steps import CrossDecodeStep, cross_backend
from tallow.fused.weights import affine, matrix
from tallow.hub import local_folder
from tallow.io.source import Source, open_source
from tallow.kernels.blocks.cross_decode_block import CrossDecodeBlock
from tallow.models import loading
from tallow.models.activations import activation_named
from tallow.models.config import Config, read_entries
from tallow.models.pretrained import PretrainedModel, check_length, tied_logits
from tallow.models.seq2seq.cross_layers import (
    CausalAttention,
    CrossAttention,
    CrossKeys,
    CrossLayer,
    EncoderAttention,
    select_sources,
)
from tallow.models.whisper import checkpoint
from tallow.models.whisper.alignment import published_heads
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.block_layers import BlockEmbedding, BlockLinear, has_kernel
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.convolution import Conv1d
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.tape.modes import no_grad
from tallow.text.whisper import WhisperTokenizer

GENERATION = "generation_config.json"
ATTENTION = Kind(settings=("num_heads",), dropout=("dropout_p",))
LONGEST_PERIOD = 10000  # of the sinusoids, in positions, over 2π


@dataclass(frozen=True, kw_only=True)
class WhisperConfig(Config):
    """The sizes of a Whisper, named as in Hugging Face's `config.json`, which `from_json` reads.

    Attributes:
        max_source_positions: S, half the frames of the spectrogram.
        max_target_positions: the most tokens that the decoder reads.
        tie_word_embeddings: the head shares the matrix of the token embedding.
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
    # Training with noise and dropped layers, a classification head, transformers' own generation, sizes that repeat
    # others, and a scale that transformers reads but does not apply.
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
        self.check_heads("d_model", "encoder_attention_heads", "decoder_attention_heads")


@dataclass
class Heard:
    """Encoded sounds in the form that the decoder attends to.

    Attributes:
        layers: for each layer of the decoder.
        scores: if a list, each layer appends the scores of its cross-attention, (B, H, T, S), before the softmax. There
            must be one sound, or one for each row.
    """

    layers: list[CrossKeys]
    scores: list[Tensor] | None = None

    def select(self, rows: Sequence[int]) -> Heard:
        """Return the sounds of these rows, in this order. A single sound is that of all rows."""
        return Heard(select_sources(self.layers, rows))


class WhisperLayer(CrossLayer):
    """The base of encoder and decoder layers: the feed-forward part, after its norm and added to its input."""

    def feed_forward(self, x_BTD: Tensor) -> Tensor:
        """Return x + fc2(activation(fc1(norm(x)))), with dropout."""
        return x_BTD + self.inner(self.final_layer_norm(x_BTD))


class WhisperEncoderLayer(WhisperLayer):
    """Self-attention and feed-forward, each after a norm and added to its input."""

    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, config.encoder_ffn_dim, device, dtype)
        sizes = config.d_model, config.encoder_attention_heads, config.attention_dropout, device, dtype
        self.self_attn = EncoderAttention(*sizes, key_bias=False)

    def forward(self, x_BSD: Tensor) -> Tensor:
        return self.feed_forward(x_BSD + self.dropout(self.self_attn(self.self_attn_layer_norm(x_BSD))))


class WhisperDecoderLayer(WhisperLayer):
    """Self-attention, cross-attention and feed-forward, each after a norm and added to its input."""

    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, config.decoder_ffn_dim, device, dtype)
        sizes = config.d_model, config.decoder_attention_heads, config.attention_dropout, device, dtype
        self.self_attn = CausalAttention(*sizes, key_bias=False)
        self.encoder_attn = CrossAttention(*sizes, key_bias=False)
        self.encoder_attn_layer_norm = LayerNorm(config.d_model, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, layer: int, heard: Heard | None, cache: KVCache | None) -> Tensor:
        x_BTD = x_BTD + self.dropout(self.self_attn(self.self_attn_layer_norm(x_BTD), layer, cache))
        if heard is None:
            return self.feed_forward(x_BTD)
        normed_BTD, sound = self.encoder_attn_layer_norm(x_BTD), heard.layers[layer]
        if heard.scores is not None:
            q_BHTK = self.encoder_attn.query(normed_BTD)
            heard.scores.append(q_BHTK @ sound.keys.mT * q_BHTK.shape[-1] ** -0.5)
        return self.feed_forward(x_BTD + self.dropout(self.encoder_attn(normed_BTD, sound)))

    def fused_block(self) -> CrossDecodeBlock:
        """Return the layer as a fused block.

        Raises:  ShapeError, DtypeError; ArgumentError for norms that differ in eps
        """
        own, cross = self.self_attn, self.encoder_attn
        eps = self.final_layer_norm.eps
        if not self.self_attn_layer_norm.eps == self.encoder_attn_layer_norm.eps == eps:
            raise ArgumentError("its norms differ in eps; the fused block has one")
        return CrossDecodeBlock(
            self_norm=affine(self.self_attn_layer_norm),
            query=affine(own.q_proj),
            key=affine(own.k_proj),
            value=affine(own.v_proj),
            output=affine(own.out_proj),
            cross_norm=affine(self.encoder_attn_layer_norm),
            cross_query=affine(cross.q_proj),
            cross_output=affine(cross.out_proj),
            mlp_norm=affine(self.final_layer_norm),
            up=affine(self.fc1),
            down=affine(self.fc2),
            heads=own.num_heads,
            eps=eps,
        )


class WhisperEncoder(Module):
    """Two convolutions, the second of which halves the frames, then transformer layers."""

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
        """Encode spectrograms.

        Shapes:  (B, M, 2 S) -> (B, S, D)
        Raises:  ShapeError for another number of mel bins or frames
        """
        bins, frames = self.conv1.in_channels, 2 * self.embed_positions.num_embeddings
        if mel_BMT.ndim != 3 or tuple(mel_BMT.shape[1:]) != (bins, frames):
            raise ShapeError(f"a spectrogram of shape {tuple(mel_BMT.shape)}; the model expects (B, {bins}, {frames})")
        x_BDS = F.gelu(self.conv2(F.gelu(self.conv1(mel_BMT.to(self.conv1.weight.dtype)))))
        x_BSD = self.dropout(x_BDS.mT.contiguous() + self.embed_positions.weight)
        for layer in self.layers:
            x_BSD = layer(x_BSD)
        return self.layer_norm(x_BSD)

    def reset_parameters(self, std: float) -> None:
        """Draw the convolutions from N(0, std²), and set the positions to sinusoids."""
        positions = self.embed_positions.weight
        if positions.device.type == "meta":
            return
        for convolution in (self.conv1, self.conv2):
            init.normal_(convolution.weight, 0.0, std)
            if convolution.bias is not None:
                init.zeros_(convolution.bias)
        with no_grad():
            positions.copy_(wrap(devices.move(sinusoids(*positions.shape), positions.device)))


class WhisperDecoder(Module):
    """Embeddings of tokens and positions, then transformer layers that attend to the text and the sound."""

    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.embed_tokens = Embedding(config.vocab_size, config.d_model, **factory)
        self.embed_positions = Embedding(config.max_target_positions, config.d_model, **factory)
        self.layers = ModuleList(WhisperDecoderLayer(config, device, dtype) for _ in range(config.decoder_layers))
        self.layer_norm = LayerNorm(config.d_model, **factory)
        self.dropout = Dropout(config.dropout)

    def listen(self, audio_ASD: Tensor) -> Heard:
        """Compute each layer's keys and values of encoded sounds, contiguous because every token reads them."""
        pairs = (layer.encoder_attn.keys_and_values(audio_ASD) for layer in self.layers)
        return Heard([CrossKeys(keys.contiguous(), values.contiguous()) for keys, values in pairs])

    def forward(self, tokens_BT: Tensor, heard: Heard | None, cache: KVCache | None = None) -> Tensor:
        """Return the head's input (B, T, D). With a cache, the tokens follow those in it, and are appended to it.

        Args:    heard: the sounds; None leaves out the attention to them
        """
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
    """The encoder and the decoder, named as in checkpoints."""

    def __init__(self, config: WhisperConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.encoder = WhisperEncoder(config, device, dtype)
        self.decoder = WhisperDecoder(config, device, dtype)


class Whisper(PretrainedModel):
    """Speech to text: `tallow.models.whisper.transcribe` transcribes files, `decode` thirty seconds.

    `from_pretrained` also takes the files of `from_single_file`, which have no `config.json`.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.

    Example:
        model = Whisper.from_pretrained("openai/whisper-tiny")
        print(transcribe(model, "talk.mp3").text)
    """

    config_class = WhisperConfig
    base_model_prefix = "model"
    head_name = "proj_out"

    def __init__(self, config: WhisperConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.model = WhisperModel(config, device, dtype)
        tied = config.tie_word_embeddings
        self.proj_out = None if tied else Linear(config.d_model, config.vocab_size, False, device, dtype)
        self.reset_parameters()

    @staticmethod
    def locate(name: str | Path, **repository: Any) -> Path:
        """Find a folder, or a file for `from_single_file`."""
        path = Path(name).expanduser()
        return path if path.is_file() else local_folder(name, **repository)

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        if path.is_dir():
            return super().read_path(path, dtype, device, quant, strict)
        model = cls.from_single_file(path, dtype, device)
        model.folder = path.parent
        return loading.quantized(model, quant, dtype)

    @classmethod
    def from_single_file(cls, source: Source, dtype: Any = None, device: Any = None) -> Self:
        """Load OpenAI's `.pt`, or whisper.cpp's ggml `.bin`, with its tokenizer.

        Quantised matrices of a ggml file stay as they are in the mapped file if the model is on the CPU and `dtype` is
        None; everything else is float32 then.

        Raises:  OSError; CheckpointError
        """
        opened = open_source(source)
        entries, state, matrices, tokenizer = checkpoint.load(opened)
        config = cls.config_class.from_entries(entries, opened.name, strict=True)
        keeps_blocks = dtype is None and devices.chosen(device).type == "cpu"
        blocks = {name: matrix for name, matrix in matrices.items() if keeps_blocks and has_kernel(matrix)}
        widened = {name: wrap(matrix.widen()) for name, matrix in matrices.items() if name not in blocks}
        dtype = dtypes.float32 if blocks else dtype
        model = loading.assemble(cls, config, state | widened | blocks, dtype, device, opened.name, {})
        if tokenizer is not None:
            model.tokenizer = tokenizer
        if (heads := published_heads(model.config)) is not None:
            model.alignment_heads = heads
        return model

    def forward(self, mel_AMT: Tensor, tokens_BT: Tensor) -> Tensor:
        """Return logits of the next token for each position.

        Shapes:  mel (A, M, 2 S), tokens (B, T) -> (B, T, V); B is a multiple of A
        """
        return self.logits(self.decoder(tokens_BT, self.decoder.listen(self.encoder(mel_AMT))))

    @property
    def encoder(self) -> WhisperEncoder:
        """The encoder."""
        return self.model.encoder

    @property
    def decoder(self) -> WhisperDecoder:
        """The decoder."""
        return self.model.decoder

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Return logits (B, T, V) from the head's input (B, T, D)."""
        if self.proj_out is not None:
            return self.proj_out(hidden_BTD)
        return tied_logits(hidden_BTD, self.decoder.embed_tokens)

    @property
    def head_table(self) -> Embedding | None:
        return self.decoder.embed_tokens if self.proj_out is None else None

    def new_cache(self, batch: int = 1) -> KVCache:
        """Return an empty cache for the decoder."""
        config, weight = self.config, self.decoder.embed_positions.weight
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

    # -------------------------------------------------------------------------------------------------- fused decoding

    fused_pattern = Pattern(
        {
            **dict.fromkeys((WhisperDecoder, ModuleList, Embedding, Linear), Kind()),
            **dict.fromkeys((BlockLinear, BlockEmbedding), Kind(settings=("format",))),
            **dict.fromkeys((CausalAttention, CrossAttention), ATTENTION),
            WhisperDecoderLayer: Kind(allowed={"activation": (F.gelu,)}),
            LayerNorm: Kind(settings=("eps",)),
            Dropout: Kind(dropout=("p",)),
        },
        device_types=frozenset({"cpu"}),
    )

    def fused_parts(self) -> dict[str, Module]:
        """Return the modules that fused decoding stands for."""
        parts: dict[str, Module] = {"model.decoder": self.decoder}
        return parts if self.proj_out is None else parts | {"proj_out": self.proj_out}

    def fused_decoder(self, heard: Heard) -> FusedDecoder[CrossDecodeStep]:
        """Return what decodes texts of some sounds, one token of each at a time."""
        return FusedDecoder(
            type(self).__name__, self.fused_pattern, self.fused_parts, lambda cache: self._fused_step(heard)
        )

    def _fused_step(self, heard: Heard) -> CrossDecodeStep:
        decoder = self.decoder
        return CrossDecodeStep(
            embedding=matrix(decoder.embed_tokens),
            positions=decoder.embed_positions.weight.array,
            blocks=self._fused_blocks(),
            cross=[(layer.keys.array, layer.values.array) for layer in heard.layers],
            norm=affine(decoder.layer_norm),
            eps=decoder.layer_norm.eps,
            head=matrix(self.proj_out or decoder.embed_tokens),
        )

    def _fused_blocks(self) -> list[CrossDecodeBlock]:
        return [layer.fused_block() for layer in self.decoder.layers]

    def _reports(self) -> list[LayerReport]:
        blocks: Blocks[list[CrossDecodeBlock]] = Blocks(self.fused_pattern)
        current = blocks.current(self.fused_parts, self._fused_blocks)
        layers = {f"model.decoder.layers.{i}": layer for i, layer in enumerate(self.decoder.layers)}
        if current is None:
            reasons = [why_not({name: layer}, self.fused_pattern) or blocks.reason for name, layer in layers.items()]
            return [LayerReport(name, reason=reason) for name, reason in zip(layers, reasons, strict=True)]
        kernel = [f"cross_decode_block, {cross_backend(block)}" for block in current]
        return [LayerReport(name, each) for name, each in zip(layers, kernel, strict=True)]

    # ----------------------------------------------------------------------------------------------------------- files

    @cached_property
    def tokenizer(self) -> WhisperTokenizer:
        """The tokenizer of the folder that the model was loaded from, read at first use. It can be set.

        Raises:  TokenizerError when there is none
        """
        if self.folder is None:
            raise TokenizerError(
                "the model was not loaded from a folder, so it has no tokenizer",
                hint="set one: model.tokenizer = WhisperTokenizer.from_pretrained(folder, vocab_size)",
            )
        return WhisperTokenizer.from_pretrained(self.folder, self.config.vocab_size)

    @cached_property
    def alignment_heads(self) -> tuple[tuple[int, int], ...]:
        """The decoder's cross-attention heads, as (layer, head), that attend to the sound of the next word.

        They are those in `generation_config.json`; for a single file with the sizes of an OpenAI model, the published
        ones; otherwise all heads of the upper half of the layers.
        """
        path = self.folder / GENERATION if self.folder is not None else None
        named = read_entries(path).get("alignment_heads") if path is not None and path.exists() else None
        layers, heads = self.config.decoder_layers, self.config.decoder_attention_heads
        if isinstance(named, list):
            pairs = tuple((int(layer), int(head)) for layer, head in named)
            if all(0 <= layer < layers and 0 <= head < heads for layer, head in pairs):
                return pairs
            raise ArgumentError(f"{path}: alignment_heads={named}, but the model has {layers} layers and {heads} heads")
        return tuple((layer, head) for layer in range(layers // 2, layers) for head in range(heads))

    def reset_parameters(self) -> None:
        """As PretrainedModel, and as the encoder's."""
        super().reset_parameters()
        self.encoder.reset_parameters(self.config.initializer_range)

    @property
    def tied_weights(self) -> Mapping[str, str]:
        tied = self.config.tie_word_embeddings
        return {"proj_out.weight": "model.decoder.embed_tokens.weight"} if tied else {}


def sinusoids(length: int, width: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return sines, then cosines, of each position, with periods from 2π to 2π · 10000, (length, width).

    Source:  Vaswani et al. 2017, arXiv:1706.03762, section 3.5; here sines and cosines are not interleaved
    """
    rates = LONGEST_PERIOD ** -(np.arange(width // 2) / max(width // 2 - 1, 1))
    angles = np.arange(length)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1, dtype=np.float32)

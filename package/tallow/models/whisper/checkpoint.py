"""Read Whisper from single files: OpenAI's `.pt`, and whisper.cpp's ggml `.bin`.

    .pt     PyTorch format: {"dims": {"n_mels": ..., ...}, "model_state_dict": {...}}
    .bin    little-endian, without alignment:
            uint32 "ggml", int32 sizes in the order of GGML_SIZES
            int32 M, int32 N, M · N float32 of mel filters
            int32 count, and for each token of text uint32 length, that many bytes
            to the end, for each tensor int32 number of dimensions, length of its name, type; int32 sizes, last
            dimension first; name; elements

Source:  https://github.com/openai/whisper, `model.py`; https://github.com/ggml-org/whisper.cpp, `src/whisper.cpp`
         (whisper_model_load) and `models/convert-pt-to-ggml.py`
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.errors import CheckpointError
from tallow.io import pytorch
from tallow.io.named import named_tensors
from tallow.io.source import Bytes, Opened, Source, open_source
from tallow.kernels.quantized import gguf_blocks
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.text.whisper import WhisperTokenizer

T = TypeVar("T")

GGML_MAGIC = b"lmgg"
GGML_SIZES = (
    *("n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer"),
    *("n_text_ctx", "n_text_state", "n_text_head", "n_text_layer", "n_mels", "ftype"),
)
GGML_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0"}
MAX_SIZE = 1 << 24
MAX_NAME = 256

# Field of the config -> OpenAI's name.
SIZES = {
    "vocab_size": "n_vocab",
    "num_mel_bins": "n_mels",
    "d_model": "n_audio_state",
    "encoder_layers": "n_audio_layer",
    "encoder_attention_heads": "n_audio_head",
    "decoder_layers": "n_text_layer",
    "decoder_attention_heads": "n_text_head",
    "max_source_positions": "n_audio_ctx",
    "max_target_positions": "n_text_ctx",
}

# OpenAI's names of parameters -> the model's.
RENAMED = (
    (re.compile(r"^(encoder|decoder)\.blocks\."), r"\1.layers."),
    (re.compile(r"\.cross_attn_ln\."), ".encoder_attn_layer_norm."),
    (re.compile(r"\.cross_attn\."), ".encoder_attn."),
    (re.compile(r"\.attn_ln\."), ".self_attn_layer_norm."),
    (re.compile(r"\.attn\."), ".self_attn."),
    (re.compile(r"\.(query|key|value)\."), lambda match: f".{match[1][0]}_proj."),
    (re.compile(r"_attn\.out\."), "_attn.out_proj."),
    (re.compile(r"\.mlp\.0\."), ".fc1."),
    (re.compile(r"\.mlp\.2\."), ".fc2."),
    (re.compile(r"\.mlp_ln\."), ".final_layer_norm."),
    (re.compile(r"^encoder\.ln_post\."), "encoder.layer_norm."),
    (re.compile(r"^decoder\.ln\."), "decoder.layer_norm."),
    (re.compile(r"\.token_embedding\."), ".embed_tokens."),
    (re.compile(r"\.positional_embedding$"), ".embed_positions.weight"),
)


class Loaded(NamedTuple):
    """The content of a file.

    Attributes:
        entries: of a config.
        state: the tensors by the model's names.
        matrices: the quantised matrices by the model's names; they stay as they lie in the file.
        tokenizer: None if the file has none.
    """

    entries: dict[str, Any]
    state: dict[str, Tensor]
    matrices: dict[str, BlockMatrix]
    tokenizer: WhisperTokenizer | None


def load(source: Source) -> Loaded:
    """Read a file of either format.

    Raises:  OSError; CheckpointError when it is neither, truncated or malformed
    """
    opened = open_source(source)
    return _load_ggml(*opened) if opened.data[:4].tobytes() == GGML_MAGIC else _load_openai(opened)


def _load_openai(opened: Opened) -> Loaded:
    content: Any = pytorch.load(opened)
    parts = (content.get("dims"), content.get("model_state_dict")) if isinstance(content, Mapping) else (None, None)
    dims, state = parts
    if not isinstance(dims, Mapping) or not isinstance(state, Mapping):
        raise CheckpointError(
            f"{opened.name} is not an OpenAI Whisper file: it has no dims or model_state_dict",
            hint="pass OpenAI's .pt file, or a folder",
        )
    return Loaded(_entries(dims, opened.name), _renamed(named_tensors(state, opened.name)), {}, None)


def _entries(dims: Mapping[str, Any], source: str) -> dict[str, Any]:
    missing = [name for name in SIZES.values() if name not in dims]
    if missing:
        raise CheckpointError(f"{source}: dims lack {', '.join(missing)}")
    invalid = [f"{name}={dims[name]!r:.80}" for name in SIZES.values() if type(dims[name]) is not int]
    if invalid:
        raise CheckpointError(f"{source}: dims are not integers: {', '.join(invalid)}", hint="download it again")
    entries = {ours: dims[theirs] for ours, theirs in SIZES.items()}
    return entries | dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 4 * entries["d_model"])


def _renamed(state: Mapping[str, T]) -> dict[str, T]:
    renamed = {}
    for name, tensor in state.items():
        for pattern, replacement in RENAMED:
            name = pattern.sub(replacement, name)
        renamed[f"model.{name}"] = tensor
    return renamed


def _load_ggml(data: Bytes, name: str) -> Loaded:
    reader = _Reader(data, name)
    reader.bytes(4)
    dims = dict(zip(GGML_SIZES, reader.integers(len(GGML_SIZES)), strict=True))
    n_mels, n_frequencies = reader.sizes(2)
    reader.bytes(4 * n_mels * n_frequencies)
    (count,) = reader.sizes(1)
    words = [reader.bytes(reader.sizes(1)[0]).tobytes() for _ in range(count)]
    if words[-1:] == [b"<|endoftext|>"]:  # in files converted from Hugging Face; a special token
        words.pop()
    state: dict[str, Tensor] = {}
    matrices: dict[str, BlockMatrix] = {}
    while reader.left:
        tensor_name, content = reader.tensor()
        if isinstance(content, BlockMatrix):
            matrices[tensor_name] = content
        else:
            state[tensor_name] = wrap(content)
    entries = _entries(dims, name)
    tokenizer = WhisperTokenizer({word: rank for rank, word in enumerate(words)}, entries["vocab_size"])
    return Loaded(entries, _renamed(state), _renamed(matrices), tokenizer)


class _Reader:
    """Reads a ggml file from start to end, and checks every size before use."""

    def __init__(self, data: Bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes not yet read."""
        return len(self._data) - self._at

    def bytes(self, count: int) -> Bytes:
        """Read bytes.  Raises: CheckpointError when the file is truncated"""
        if count > self.left:
            raise CheckpointError(
                f"{self._name} is truncated: expected {count} bytes at {self._at}, found {self.left}",
                hint="download it again",
            )
        self._at += count
        return self._data[self._at - count : self._at]

    def integers(self, count: int) -> tuple[int, ...]:
        """Read int32 numbers."""
        return struct.unpack(f"<{count}i", self.bytes(4 * count).tobytes())

    def sizes(self, count: int) -> tuple[int, ...]:
        """Read int32 numbers that are sizes.  Raises: CheckpointError for an invalid size"""
        values = self.integers(count)
        if not all(0 <= value <= MAX_SIZE for value in values):
            raise CheckpointError(f"{self._name} is malformed: sizes {values} before offset {self._at}")
        return values

    def tensor(self) -> tuple[str, np.ndarray[Any, Any] | BlockMatrix]:
        """Read the name and the elements of a tensor, a matrix if they are quantised.  Raises: CheckpointError"""
        n_dims, name_bytes, kind = self.integers(3)
        if not 1 <= n_dims <= 4 or not 0 < name_bytes <= MAX_NAME:
            raise CheckpointError(
                f"{self._name} is malformed: a tensor with {n_dims} dimensions before offset {self._at}"
            )
        if kind not in GGML_TYPES:
            raise CheckpointError(
                f"{self._name}: unsupported ggml type {kind}", hint=f"supported: {', '.join(GGML_TYPES.values())}"
            )
        shape = self.sizes(n_dims)[::-1]
        name = self.bytes(name_bytes).tobytes().decode(errors="replace")
        if name.endswith(("conv1.bias", "conv2.bias")):
            shape = shape[:1]  # stored as columns
        return name, self._elements(GGML_TYPES[kind], shape, name)

    def _elements(self, kind: str, shape: tuple[int, ...], name: str) -> np.ndarray[Any, Any] | BlockMatrix:
        count = math.prod(shape)
        if kind in ("F32", "F16"):
            dtype = np.dtype("<f4" if kind == "F32" else "<f2")
            return self.bytes(count * dtype.itemsize).copy().view(dtype).reshape(shape)
        block = gguf_blocks.FORMATS[kind]
        if shape[-1] % block.weights:
            raise CheckpointError(
                f"{self._name}: the rows of {name}, {shape}, do not divide into blocks of {block.weights}"
            )
        blocks = self.bytes(count // block.weights * block.record.itemsize)
        if len(shape) != 2:
            return gguf_blocks.dequantize(kind, blocks).reshape(shape)
        return BlockMatrix(blocks.reshape(shape[0], shape[1] // block.weights * block.record.itemsize), kind)

"""Read and write llama2.c checkpoints: a header, then float32 weights in a fixed order.

    version 0   7 int32: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len. A negative vocab_size
                means that the classifier has its own weights, at the very end. Two rotary tables, whose size follows
                from seq_len and the head width, come before it; they are skipped.
    version 1   the bytes "24ka" (uint32 0x616b3432), int32 version, the same 7 int32, one byte that is 1 if the
                classifier shares the embedding's weights, zeros up to byte 256
    version 2   as version 1, with int8 weights; not supported

Source:  https://github.com/karpathy/llama2.c, `export.py`: legacy_export, version1_export
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from tallow.errors import ArgumentError, CheckpointError
from tallow.io.atomic import atomic_write
from tallow.io.source import Bytes, Path, Source, open_source

MAGIC = 0x616B3432
V0_HEADER_BYTES = 28
V1_HEADER_BYTES = 256
ROTARY_TABLES = ("freq_cis_real", "freq_cis_imag")
SIZES = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
# Weights of a layer by their names in Hugging Face's folders -> the array with those of all layers.
LAYER_NAMES = {
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


Shapes: TypeAlias = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Header:
    """The sizes in a checkpoint's header, with llama2.c's names, and the layout that follows from them."""

    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    seq_len: int
    shared_classifier: bool
    version: int

    @property
    def head_dim(self) -> int:
        """The width of an attention head."""
        return self.dim // self.n_heads

    @property
    def data_start(self) -> int:
        """The offset of the weights in bytes."""
        return V1_HEADER_BYTES if self.version else V0_HEADER_BYTES

    @property
    def file_bytes(self) -> int:
        """The size of a file with this header in bytes."""
        return self.data_start + 4 * sum(map(prod, self.shapes().values()))

    def shapes(self) -> Shapes:
        """Return the shapes of the arrays in file order, by their names in `run.c`. Weights are (layer, out, in)."""
        norms: Shapes = {"rms_att_weight": (self.n_layers, self.dim), "rms_ffn_weight": (self.n_layers, self.dim)}
        final_norm: Shapes = {"rms_final_weight": (self.dim,)}
        embedding: Shapes = {"token_embedding_table": (self.vocab_size, self.dim)}
        classifier: Shapes = {} if self.shared_classifier else {"wcls": (self.vocab_size, self.dim)}
        kv_dim = self.n_kv_heads * self.head_dim
        attention: Shapes = {
            "wq": (self.n_layers, self.dim, self.dim),
            "wk": (self.n_layers, kv_dim, self.dim),
            "wv": (self.n_layers, kv_dim, self.dim),
            "wo": (self.n_layers, self.dim, self.dim),
        }
        feed_forward: Shapes = {
            "w1": (self.n_layers, self.hidden_dim, self.dim),
            "w2": (self.n_layers, self.dim, self.hidden_dim),
            "w3": (self.n_layers, self.hidden_dim, self.dim),
        }
        if self.version:
            parts = [norms, final_norm, embedding, attention, feed_forward, classifier]
        else:
            rotary: Shapes = dict.fromkeys(ROTARY_TABLES, (self.seq_len, self.head_dim // 2))
            attention_norm: Shapes = {"rms_att_weight": norms["rms_att_weight"]}
            ffn_norm: Shapes = {"rms_ffn_weight": norms["rms_ffn_weight"]}
            parts = [embedding, attention_norm, attention, ffn_norm, feed_forward, final_norm, rotary, classifier]
        return dict(chain.from_iterable(part.items() for part in parts))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The header and the weights of a file."""

    header: Header
    arrays: dict[str, np.ndarray[Any, Any]]


def load(source: Source) -> Checkpoint:
    """Load the header and the weights of a file or buffer; the weights are float32 views of it.

    Raises:  CheckpointError if the header is invalid, or the file's size differs from what it implies; raised before
             any allocation of that size
    """
    data, name = open_source(source)
    header = read_header(data[:V1_HEADER_BYTES], name)
    check_size(header, len(data), name)
    arrays, position = {}, header.data_start
    for key, shape in header.shapes().items():
        weight_bytes = 4 * prod(shape)
        if key not in ROTARY_TABLES:
            arrays[key] = data[position : position + weight_bytes].view(np.float32).reshape(shape)
        position += weight_bytes
    return Checkpoint(header, arrays)


def is_checkpoint(data: Bytes) -> bool:
    """Return whether `data` is a llama2.c file. Version 0 has no magic bytes; its size must match its header."""
    start = data[:V1_HEADER_BYTES]
    if len(start) >= 4 and int.from_bytes(start[:4].tobytes(), "little") == MAGIC:
        return True
    try:
        check_size(read_header(start), len(data))
    except CheckpointError:
        return False
    return True


def save(header: Header, arrays: Mapping[str, np.ndarray[Any, Any]], path: Path) -> None:
    """Write a checkpoint of version 0 to a path, which is replaced atomically at the end."""
    with atomic_write(path) as file:
        write(header, arrays, file)


def write(header: Header, arrays: Mapping[str, np.ndarray[Any, Any]], file: BinaryIO) -> None:
    """Write a checkpoint of version 0, the version that `run.c` reads.

    Args:  arrays: arrays with the names and shapes of `header.shapes()`, of any float dtype; the rotary tables are
        computed from the sizes

    Raises:  ArgumentError for version 1, and for arrays that are missing or have the wrong shape
    """
    if header.version:
        raise ArgumentError(f"llama2c: version {header.version} cannot be written", hint="write version 0")
    sizes = {name: getattr(header, name) for name in SIZES}
    if not header.shared_classifier:
        sizes["vocab_size"] *= -1  # how the format marks it
    shapes = header.shapes()
    needed = {name: shape for name, shape in shapes.items() if name not in ROTARY_TABLES}
    wrong = [name for name, shape in needed.items() if name not in arrays or arrays[name].shape != shape]
    if wrong:
        raise ArgumentError(f"llama2c: {', '.join(wrong)} must have shape {[shapes[name] for name in wrong]}")
    angles = np.outer(np.arange(header.seq_len), 10000.0 ** (-np.arange(0, header.head_dim, 2) / header.head_dim))
    tables = dict(zip(ROTARY_TABLES, (np.cos(angles), np.sin(angles)), strict=True))
    file.write(struct.pack("<7i", *sizes.values()))
    for name in shapes:
        array = tables[name] if name in tables else arrays[name]
        file.write(np.ascontiguousarray(array, np.float32).data)


def read_header(data: Source, name: str = "header") -> Header:
    """Parse and check a header from the first 256 bytes of a file. Pages call this before a download ends.

    Raises:  CheckpointError
    """
    start: Bytes = open_source(data)[0]
    if len(start) < V0_HEADER_BYTES:
        raise CheckpointError(
            f"{name}: {len(start)} bytes are too few for a llama2.c checkpoint", hint="download it again"
        )
    raw = start.tobytes()
    if struct.unpack_from("<I", raw)[0] != MAGIC:
        sizes: dict[str, Any] = dict(zip(SIZES, struct.unpack_from("<7i", raw), strict=True))
        shared = sizes["vocab_size"] > 0
        header = Header(**sizes | {"vocab_size": abs(sizes["vocab_size"])}, shared_classifier=shared, version=0)
    else:
        header = _versioned(raw, name)
    _check_sizes(header, name)
    return header


def check_size(header: Header, file_bytes: int, name: str = "file") -> None:
    """Check the size of a file against its header.

    Raises:  CheckpointError
    """
    if file_bytes != header.file_bytes:
        fault = "truncated" if file_bytes < header.file_bytes else "oversized"
        raise CheckpointError(
            f"{name}: {fault}: {file_bytes} bytes, but its header ({_describe(header)}) implies {header.file_bytes}",
            hint="download it again; if the sizes in the header are not the model's, it is not a llama2.c checkpoint",
        )


def _versioned(raw: bytes, name: str) -> Header:
    if len(raw) < V1_HEADER_BYTES:
        raise CheckpointError(f"{name}: truncated inside its 256-byte header", hint="download it again")
    version, *values, shared = struct.unpack_from("<i7iB", raw, 4)
    if version == 2:
        raise CheckpointError(
            f"{name}: version 2, with int8 weights (Q8_0); tallow reads versions 0 and 1, with float32 weights",
            hint="export it again: export.py model.bin --version 1",
        )
    if version != 1:
        raise CheckpointError(
            f"{name}: version {version}; tallow reads versions 0 and 1", hint="export it as version 1"
        )
    if shared > 1:
        raise CheckpointError(f"{name}: the byte for a shared classifier is {shared}; expected 0 or 1")
    sizes: dict[str, Any] = dict(zip(SIZES, values, strict=True))
    return Header(**sizes, shared_classifier=bool(shared), version=1)


def _check_sizes(header: Header, name: str) -> None:
    fault = None
    if min(getattr(header, size) for size in SIZES) < 1:
        fault = "every size must be positive"
    elif header.dim % header.n_heads:
        fault = "n_heads must divide dim"
    elif header.head_dim % 2:
        fault = "the head width dim / n_heads must be even, for the rotary embedding"
    elif header.n_heads % header.n_kv_heads:
        fault = "n_kv_heads must divide n_heads"
    if fault:
        raise CheckpointError(f"{name}: header {_describe(header)}: {fault}", hint="this is not a llama2.c checkpoint")


def _describe(header: Header) -> str:
    return ", ".join(f"{size}={getattr(header, size)}" for size in SIZES)

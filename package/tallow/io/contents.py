"""The contents of a weights file, without reading the weights: names, dtypes, shapes, sizes and metadata."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.io import gguf, gguf_layout, llama2c, pytorch, safetensors
from tallow.io.files import load
from tallow.io.json_object import parse_object
from tallow.io.model_folder import load_folder, load_weights, open_weights
from tallow.io.npz import MAGIC as NPY_MAGIC
from tallow.io.regular import read_regular
from tallow.io.source import Bytes, Path, open_source
from tallow.io.zip_archive import MAGIC as ZIP_MAGIC

CONFIG = "config.json"
MAX_CONFIG_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor: its name, its dtype in the format's terms, its shape, and its size in the file in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a file or of a model's folder.

    Attributes:
        format: description of the format.
        metadata: the file's other entries; for a folder, its `config.json`.
        tensors: the tensors in file order.
    """

    format: str
    metadata: dict[str, Any]
    tensors: list[Entry]


def contents(path: Path) -> Contents:
    """Return the contents of a file in any supported format, or of a Hugging Face folder. Reads only headers.

    Raises:  OSError if the file cannot be read; CheckpointError if it is truncated, malformed or of an unknown format
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return _of_folder(path)
    data, _ = open_source(path)
    head = data[:16].tobytes()
    if head[:4] == gguf_layout.MAGIC:
        return _of_gguf(path)
    if head[:4] == ZIP_MAGIC or head[:6] == NPY_MAGIC or pytorch.is_legacy(data):
        kind = "NumPy array" if head[:6] == NPY_MAGIC else "PyTorch or NumPy archive"
        return _of_object(load(path), "PyTorch, legacy" if pytorch.is_legacy(data) else kind)
    if head[8:9] == b"{":
        return _of_safetensors(path)
    return _of_llama2c(data, path)


def _of_safetensors(path: str) -> Contents:
    with safetensors.safe_open(path) as file:
        infos = {name: file.info(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        entries = [Entry(name, info.dtype, info.shape, info.end - info.begin) for name, info in infos.items()]
        return Contents("safetensors", dict(file.metadata()), entries)


def _of_gguf(path: str) -> Contents:
    file = gguf.load(path)
    infos = {name: file.info(name) for name in file}
    # The size of tensors in formats that tallow does not read is unknown.
    sizes = {name: 0 if info.type in gguf_layout.FOREIGN.values() else info.bytes for name, info in infos.items()}
    entries = [Entry(name, info.type, info.shape, sizes[name]) for name, info in infos.items()]
    return Contents("GGUF", dict(file.metadata), entries)


def _of_llama2c(data: Bytes, path: str) -> Contents:
    if not len(data):
        raise CheckpointError(f"{path} is empty", hint="download it again")
    try:
        header = llama2c.read_header(data, path)
        llama2c.check_size(header, len(data), path)
    except CheckpointError as error:
        raise CheckpointError(
            f"{path} is in an unknown format", hint="supported are safetensors, .pt, .npz, .npy, GGUF and llama2c"
        ) from error
    sizes = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len", "shared_classifier")
    entries = [Entry(name, "F32", tuple(shape), 4 * prod(shape)) for name, shape in header.shapes().items()]
    return Contents(f"llama2c, version {header.version}", {name: getattr(header, name) for name in sizes}, entries)


def _of_folder(path: str) -> Contents:
    config = os.path.join(path, CONFIG)
    metadata: dict[str, Any] = {}
    if os.path.exists(config):
        metadata = parse_object(read_regular(config), config, MAX_CONFIG_DEPTH)
    return Contents("model folder", metadata, list(load_folder(path, _entries).values()))


def _entries(path: str) -> dict[str, Entry]:
    """Return the entries of a folder's file by name. Dtypes that tallow has are named as it names them."""
    if not path.endswith(".safetensors"):
        return {name: _entry(name, tensor) for name, tensor in load_weights(path).items()}
    with safetensors.safe_open(open_weights(path)) as file:
        infos = {name: file.info(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    names = {form: dtype.name for form, dtype in safetensors.DTYPES.items()}
    return {
        name: Entry(name, names.get(info.dtype, info.dtype), info.shape, info.end - info.begin)
        for name, info in infos.items()
    }


def _of_object(loaded: Any, kind: str) -> Contents:
    """Return tensors at any depth, named by their path; other values are metadata."""
    tensors, values = [], {}
    for name, value in leaves(loaded):
        if isinstance(value, Tensor):
            tensors.append(_entry(name, value))
        else:
            values[name] = value
    return Contents(kind, values, tensors)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in mappings and lists of tensors, at any depth, with their paths."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes) and any(_is_node(part) for part in value):
        for i, part in enumerate(value):
            yield from leaves(part, f"{path}.{i}" if path else str(i))
    else:
        yield path or "(the file)", value


def _is_node(value: Any) -> bool:
    return isinstance(value, Tensor | Mapping | list | tuple)


def _entry(name: str, tensor: Tensor) -> Entry:
    return Entry(name, tensor.dtype.name, tuple(tensor.shape), tensor.nbytes)

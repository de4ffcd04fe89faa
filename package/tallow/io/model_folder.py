"""The weights of a Hugging Face folder: one file, or shards and an index.

    model.safetensors   or   model.safetensors.index.json
    pytorch_model.bin   or   pytorch_model.bin.index.json

An index is {"weight_map": {"tensor name": "shard file name"}}.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, CheckpointError
from tallow.io import pytorch, safetensors
from tallow.io.json_object import parse_object
from tallow.io.named import named_tensors
from tallow.io.regular import copy_regular, read_regular
from tallow.io.source import Opened, Path, open_source

NAMES = ("model.safetensors", "pytorch_model.bin")  # the first that exists
INDEX = ".index.json"
WEIGHTS = (".safetensors", ".bin", ".pt")
# Files next to the weights: config, vocabularies, chat templates.
DESCRIPTIONS = (
    *("*.json", "*.txt", "*.model", "*.spm", "*.jinja", "*.tiktoken", "additional_chat_templates/*.jinja"),
    *("artifact.metadata", "*_linear.pt"),  # of ColBERT, and the small heads of BGE-M3
)
MAX_DEPTH = 3
# The largest tokenizer.json files in use have about 40 MB. A larger file was chosen by mistake and is not read.
MAX_TEXT_BYTES = 64 << 20
HEADER_AT = 8  # in a safetensors file, after the header's length
PYTORCH_HEADS = (b"PK", b"\x80")  # a zip archive, or a pickle as older versions of PyTorch wrote
DIRECTORY = "a model's files are on its Hub page, under Files and versions"
# Files often saved instead of weights: how they start, what they are, and a hint.
MISTAKEN = (
    (b"<", "a web page", "download it again; the page may say why the download was refused"),
    (b"version https://git-lfs", "a Git LFS pointer", "download the file itself: git lfs pull"),
    (b"%pdf", "a PDF", DIRECTORY),
    (b"\x89png", "a picture", DIRECTORY),
    (b"\xff\xd8\xff", "a picture", DIRECTORY),
    (b"gguf", "a GGUF file", "load it by itself: it contains its config and its tokenizer"),
)
LoadFile: TypeAlias = Callable[[str], dict[str, Any]]
LoadFolder: TypeAlias = Callable[[Path], dict[str, Any]]


def load_folder(folder: Path, load_file: LoadFile | None = None, *, variant: str | None = None) -> dict[str, Any]:
    """Load every tensor of a folder. Files are memory-mapped; safetensors take precedence over PyTorch files.

    Args:
        load_file: reads one file and returns values by tensor name; None means the tensors.
        variant: of the weights, such as "fp16", which is a part of the names of files.

    Raises:  CheckpointError if there are no weights, or an index or a file is malformed or lacks a tensor
    """
    first = os.path.join(folder, weight_files(folder, variant)[0])
    return load_index(first, load_file) if first.endswith(".json") else (load_file or load_weights)(first)


def variant_of(name: str, variant: str | None) -> str:
    """Return the name of a file of a variant of the weights: "model.fp16.safetensors" for "fp16".

    Raises:  ArgumentError for a variant that is no part of a name
    """
    if variant is None:
        return name
    if not re.fullmatch(r"[\w-]+", variant):
        raise ArgumentError(f"variant={variant!r:.80}", hint='pass a part of the names of files, such as "fp16"')
    stem, dot, end = name.rpartition(".")
    return f"{stem}.{variant}{dot}{end}"


@contextlib.contextmanager
def memory_folder(files: Mapping[str, Any]) -> Iterator[LoadFolder]:
    """Work in a temporary folder with a model whose files are in memory. Files of weights are empty in the folder.

    The folder is the working directory, so errors name files by their paths in it.

    Args:  files: bytes or arrays of bytes by path

    Yields:  a function that loads the weights of the folder or of a subfolder; tensors view `files`
    """

    def load_file(path: str) -> dict[str, Any]:
        name = pathlib.Path(path).as_posix()
        return load_weights(Opened(files[name], name))

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, data in files.items():
            path = pathlib.Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"" if name.endswith(WEIGHTS) else data)
        yield lambda part: load_folder(part, load_file)


def check_head(name: str, head: bytes, size: int | None) -> None:
    """Check the start of a file of a folder before the rest is fetched: weights, JSON, or another text.

    Args:
        head: its first bytes, at least 9 if it has them
        size: in bytes, None if not known

    Raises:  CheckpointError if they do not fit the name
    """
    if name.endswith((".safetensors", ".bin", ".json")):
        refuse_mistaken(name, head, "JSON" if name.endswith(".json") else "a weights file")
    if name.endswith(".safetensors"):
        if head[HEADER_AT : HEADER_AT + 1] != b"{":
            raise CheckpointError(f"{name} is not a safetensors file", hint=DIRECTORY)
    elif name.endswith(".bin"):
        if not head.startswith(PYTORCH_HEADS):
            raise CheckpointError(f"{name} is not a PyTorch file", hint=DIRECTORY)
    elif size is not None and size > MAX_TEXT_BYTES:
        raise CheckpointError(f"{name} is too large: {size} bytes", hint=DIRECTORY)
    elif name.endswith(".json") and head.lstrip()[:1] not in (b"{", b"["):
        raise CheckpointError(f"{name} is not JSON", hint=DIRECTORY)


def weight_files(folder: Path, variant: str | None = None) -> list[str]:
    """Return the names of a folder's weight files: one file, or an index and the shards that it names.

    Args:    variant: of the weights; None means those without a variant in their name
    Raises:  CheckpointError if there are none, or the index is malformed or names a shard that is missing
    """
    for plain in NAMES:
        name, index = variant_of(plain, variant), variant_of(plain + INDEX, variant)
        if os.path.exists(path := os.path.join(folder, index)):
            return [index, *sorted({*_read_index(path).values()})]
        if os.path.exists(os.path.join(folder, name)):
            return [name]
    names = " nor ".join(variant_of(plain, variant) for plain in NAMES)
    hint = "pass a model's folder" if variant is None else "leave variant out, or see which files the folder has"
    raise CheckpointError(f"{os.fspath(folder)} has neither {names} nor an index", hint=hint)


def has_weights(folder: Path) -> bool:
    """Return whether the folder contains a weights file or an index of shards."""
    return any(os.path.exists(os.path.join(folder, f"{name}{index}")) for name in NAMES for index in ("", INDEX))


def copy_descriptions(folder: Path, target: Path) -> None:
    """Copy the files next to a folder's weights: config, tokenizer, chat template."""
    source, target = pathlib.Path(folder), pathlib.Path(target)
    for pattern in DESCRIPTIONS:
        for file in source.glob(pattern):
            if not file.name.endswith(INDEX):
                copy = target / file.relative_to(source)
                copy.parent.mkdir(exist_ok=True)
                copy_regular(file, copy)


def load_index(index: Path, load_file: LoadFile | None = None) -> dict[str, Any]:
    """Load every tensor of the shards that an index names, from its folder; `load_file` as in `load_folder`.

    Raises:  CheckpointError if the index or a shard is malformed, or a shard or one of its tensors is missing
    """
    index = os.fspath(index)
    weight_map = _read_index(index)
    load_file = load_file or load_weights
    shards = {shard: load_file(os.path.join(os.path.dirname(index), shard)) for shard in {*weight_map.values()}}
    for name, shard in weight_map.items():
        if name not in shards[shard]:
            raise CheckpointError(f"{index}: the shard {shard!r} has no tensor {name!r}")
    return {name: shards[shard][name] for name, shard in weight_map.items()}


def load_weights(source: Path | Opened) -> dict[str, Any]:
    """Load every tensor of one file, safetensors or PyTorch by its extension.

    Those of float8 are converted to float16 or bfloat16, which hold all their values: ops do not take float8.

    Raises:  CheckpointError if it is malformed or contains anything else
    """
    opened = open_weights(source)
    is_safe = opened.name.endswith(".safetensors")
    found = safetensors.load(opened) if is_safe else named_tensors(pytorch.load(opened), opened.name)
    return {name: _as_weight(tensor) for name, tensor in found.items()}


def _as_weight(tensor: Tensor) -> Tensor:
    if tensor.dtype not in dtypes.FLOAT8:
        return tensor
    wider = dtypes.bfloat16 if tensor.dtype is dtypes.float8_e8m0fnu else dtypes.float16
    return wrap(dtypes.cast(tensor.array, wider))


def open_weights(source: Path | Opened) -> Opened:
    """Open a weights file.  Raises: CheckpointError for a file that is often saved instead of one"""
    opened = open_source(source)
    refuse_mistaken(opened.name, opened.data[:64].tobytes(), "a weights file")
    return opened


def refuse_mistaken(name: str, head: bytes, kind: str) -> None:
    """Raise CheckpointError for a file that is often saved instead of one of another kind, by its first bytes."""
    for prefix, what, hint in MISTAKEN:
        if head.lower().startswith(prefix):
            raise CheckpointError(f"{name} is {what}, not {kind}", hint)


def _read_index(path: str) -> dict[str, str]:
    """Return the shard of each tensor. Shards must be plain names: a path could lead out of the folder."""
    weight_map = parse_object(read_regular(path), path, MAX_DEPTH).get("weight_map")
    if not isinstance(weight_map, dict):
        raise CheckpointError(f"{path} has no weight_map")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or shard != os.path.basename(shard) or shard in ("", ".", ".."):
            raise CheckpointError(f"{path}: the shard of tensor {name!r} is {shard!r}, which is not a file name")
        if not os.path.exists(os.path.join(os.path.dirname(path), shard)):
            raise CheckpointError(f"{path}: the shard {shard!r} is missing", hint="download all files of the model")
    return weight_map

"""The weights of a Hugging Face folder: one file, or shards and an index that says which tensor is in which.

    model.safetensors   or   model.safetensors.index.json
    pytorch_model.bin   or   pytorch_model.bin.index.json

An index is {"weight_map": {"name of a tensor": "file name of a shard"}}.
"""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any, TypeAlias

from tallow.errors import CheckpointError
from tallow.io import pytorch, safetensors
from tallow.io.json_object import parse_object
from tallow.io.named import named_tensors
from tallow.io.source import Opened, Path, open_source

NAMES = ("model.safetensors", "pytorch_model.bin")  # the first that is there
INDEX = ".index.json"
# What lies beside the weights: config, vocabularies, chat templates.
DESCRIPTIONS = ("*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken", "additional_chat_templates/*.jinja")
MAX_DEPTH = 3
# How files begin that are often saved in place of weights, what they are, and what to do.
MISTAKEN = (
    (b"<", "a web page", "fetch it again; the page may say why the download was refused"),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
)
LoadFile: TypeAlias = Callable[[str], dict[str, Any]]


def load_folder(folder: Path, load_file: LoadFile | None = None) -> dict[str, Any]:
    """Every tensor of a folder. Files are mapped, not read; safetensors go before PyTorch's.

    Args:  load_file: takes what is needed from one file, by the tensors' names; None means the tensors

    Raises:  CheckpointError when there are no weights, or an index, a shard or a file is malformed or lacks a tensor
    """
    first = os.path.join(folder, weight_files(folder)[0])
    return load_index(first, load_file) if first.endswith(INDEX) else (load_file or load_weights)(first)


def weight_files(folder: Path) -> list[str]:
    """The names of the files that hold a folder's weights: one, or an index and the shards that it names.

    Raises:  CheckpointError when there are none, or the index is malformed or names a shard that is missing
    """
    for name in NAMES:
        index = os.path.join(folder, name + INDEX)
        if os.path.exists(index):
            return [name + INDEX, *sorted({*_read_index(index).values()})]
        if os.path.exists(os.path.join(folder, name)):
            return [name]
    raise CheckpointError(
        f"{os.fspath(folder)} has neither {' nor '.join(NAMES)}, nor an index of one", mend="pass a model's folder"
    )


def copy_descriptions(folder: Path, target: Path) -> None:
    """Copy what lies beside a folder's weights: config, tokenizer, chat template."""
    source, target = pathlib.Path(folder), pathlib.Path(target)
    for pattern in DESCRIPTIONS:
        for file in source.glob(pattern):
            if not file.name.endswith(INDEX):
                copy = target / file.relative_to(source)
                copy.parent.mkdir(exist_ok=True)
                shutil.copyfile(file, copy)


def load_index(index: Path, load_file: LoadFile | None = None) -> dict[str, Any]:
    """Every tensor of the shards that an index names, which lie beside it; `load_file` as in `load_folder`.

    Raises:  CheckpointError when the index or a shard is malformed, or a shard or one of its tensors is missing
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
    """Every tensor of one file, which is safetensors or PyTorch's as its name ends.

    Raises:  CheckpointError when it is malformed, or holds something else
    """
    opened = open_source(source)
    head = opened.data[:64].tobytes()
    for begin, what, mend in MISTAKEN:
        if head.lower().startswith(begin):
            raise CheckpointError(f"{opened.name} is {what}, and no weights", mend)
    if opened.name.endswith(".safetensors"):
        return safetensors.load(opened)
    return dict(named_tensors(pytorch.load(opened), opened.name))


def _read_index(path: str) -> dict[str, str]:
    """Tensor name to shard name. A shard lies beside its index: a path would reach out of the folder."""
    with open(path, "rb") as file:
        weight_map = parse_object(file.read(), path, MAX_DEPTH).get("weight_map")
    if not isinstance(weight_map, dict):
        raise CheckpointError(f"{path} has no weight_map")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or shard != os.path.basename(shard) or shard in ("", ".", ".."):
            raise CheckpointError(f"{path}: tensor {name!r} is said to be in {shard!r}, which is no file name")
        if not os.path.exists(os.path.join(os.path.dirname(path), shard)):
            raise CheckpointError(f"{path}: the shard {shard!r} is missing", mend="fetch all files of the model")
    return weight_map

"""Write a model as a folder that transformers reads: the config, the weights in one file or in shards, and settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tallow.errors import ArgumentError
from tallow.io import safetensors
from tallow.io.atomic import atomic_write
from tallow.io.model_folder import INDEX, variant_of
from tallow.nn.block_layers import block_layers
from tallow.nn.module import Module
from tallow.transformers.adapters import adapters_of
from tallow.transformers.state_names import saved

WEIGHTS = "model.safetensors"
METADATA = {"format": "pt"}
MULTIPLES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def save(
    model: Any,
    save_directory: str | Path,
    is_main_process: bool = True,
    state_dict: Mapping[str, Any] | None = None,
    push_to_hub: bool = False,
    max_shard_size: int | str = "50GB",
    save_function: Callable[..., Any] | None = None,
    variant: str | None = None,
    **kwargs: Any,
) -> None:
    """Write a model's folder; of a model with adapters the active one alone, as in transformers.

    Args:
        is_main_process: False writes nothing.
        state_dict: weights in place of the model's.
        max_shard_size: the most bytes of a file of weights: a number, or such as "5GB".
        push_to_hub: upload it too, to the repository of the folder's name, or `repo_id`.
        save_function: has no effect: files are safetensors.
        variant: a part of the names of the files of weights, such as "fp16".
        kwargs: `repo_id`, `token`, `private` and others for the upload

    Raises:  ArgumentError for quantised weights, another size, several active adapters, and `state_dict` with an
             adapter; OSError
    """
    if not is_main_process:
        return
    folder = Path(save_directory)
    if (adapters := adapters_of(model)) is not None:
        if state_dict is not None:
            raise ArgumentError("save_pretrained: state_dict with an adapter", hint="load_adapter takes its weights")
        adapters.write_adapter(adapters.active_adapter, folder)
    else:
        _save_model(model, folder, state_dict, max_shard_size, variant)
    if push_to_hub:
        model.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)


def _save_model(
    model: Any, folder: Path, state_dict: Mapping[str, Any] | None, max_shard_size: int | str, variant: str | None
) -> None:
    if any(block_layers(model)):
        raise ArgumentError(
            f"{type(model).__name__}.save_pretrained: quantised weights have no form in this folder",
            hint="write a GGUF file: tallow convert, or tallow.models.gguf_export",
        )
    folder.mkdir(parents=True, exist_ok=True)
    model.config.architectures = [type(model).__name__]
    model.config.dtype = model.dtype
    model.config.save_pretrained(folder)
    settings = getattr(model, "generation_config", None)
    if settings is not None and hasattr(settings, "save_pretrained") and model.can_generate():
        settings.save_pretrained(folder)
    tensors = saved(model, Module.state_dict(model)) if state_dict is None else dict(state_dict)
    write_weights(
        {name: each.detach().cpu().contiguous() for name, each in tensors.items()}, folder, max_shard_size, variant
    )


def write_weights(
    tensors: Mapping[str, Any], folder: Path, max_shard_size: int | str, variant: str | None = None
) -> None:
    """Write tensors to one file, or to shards and their index; files of an earlier save that are not used go."""
    shards = _shards(tensors, bytes_of(max_shard_size))
    whole = variant_of(WEIGHTS, variant)
    stem = whole.removesuffix(".safetensors")
    count = len(shards)
    names = [whole] if count == 1 else [f"{stem}-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)]
    for name, shard in zip(names, shards, strict=True):
        safetensors.save(shard, str(folder / name), METADATA)
    index = folder / variant_of(WEIGHTS + INDEX, variant)
    if len(shards) > 1:
        places = {tensor: name for name, shard in zip(names, shards, strict=True) for tensor in shard}
        total = sum(each.numel() * each.dtype.itemsize for each in tensors.values())
        entries = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
        with atomic_write(index) as file:
            file.write((json.dumps(entries, indent=2) + "\n").encode())
    else:
        index.unlink(missing_ok=True)
    former = [
        path
        for path in folder.glob("model*.safetensors")
        if re.fullmatch(re.escape(stem) + r"(-\d+-of-\d+)?", path.stem)
    ]
    for path in former:
        if path.name not in names:
            path.unlink()


def bytes_of(size: int | str) -> int:
    """Return a number of bytes, given as such or as "5GB".  Raises: ArgumentError"""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]i?B)", size.strip(), re.IGNORECASE)
    if match is None:
        raise ArgumentError(f"max_shard_size={size!r}", hint='pass a number of bytes, or such as "5GB"')
    return int(float(match[1]) * MULTIPLES[match[2].upper()])


def _shards(tensors: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """Divide tensors in their order into parts of at most `most` bytes, where one alone is not larger."""
    shards: list[dict[str, Any]] = [{}]
    held = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.dtype.itemsize
        if shards[-1] and held + size > most:
            shards.append({})
            held = 0
        shards[-1][name] = tensor
        held += size
    return shards

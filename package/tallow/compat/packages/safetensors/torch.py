"""safetensors.torch: files of tensors, and of modules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tallow.compat.packages.safetensors import safe_open
from tallow.core.tensor import Tensor
from tallow.io import safetensors as files
from tallow.nn import Module

Metadata = Mapping[str, str] | None


def load_file(filename: str | os.PathLike[str], device: Any = "cpu", backend: Any = None) -> dict[str, Tensor]:
    """Return the tensors of a file. Raises: FileNotFoundError; SafetensorError for a damaged file."""
    file = safe_open(filename, "pt", device)
    return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data: bytes) -> dict[str, Tensor]:
    """Return the tensors of a file's bytes. Raises: SafetensorError if they are damaged."""
    return files.load(data)


def save_file(tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: Metadata = None) -> None:
    """Write tensors to a file. Raises: ValueError if two share memory."""
    _refuse_shared(tensors)
    files.save(tensors, Path(filename), metadata)


def save(tensors: Mapping[str, Tensor], metadata: Metadata = None) -> bytes:
    """Return the bytes of a file of tensors. Raises: ValueError if two share memory."""
    _refuse_shared(tensors)
    return b"".join(files.encode(tensors, metadata))


def save_model(
    model: Module, filename: str, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Write the state of a module. Of names with the same memory the first is written; metadata names the others."""
    notes = dict(metadata or {})
    kept = {}
    state = model.state_dict()
    for name, owner in _owners(state).items():
        tensor = state[name]
        if owner == name:
            kept[name] = tensor.contiguous() if force_contiguous else tensor
        else:
            notes[name] = owner
    save_file(kept, filename, notes or None)


def load_model(
    model: Module, filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu"
) -> tuple[list[str], list[str]]:
    """Load the state of a module. Return the names that are missing in the file, and those that the module lacks.

    Of names with the same memory in the module, the file needs one.
    """
    state = load_file(filename, device)
    owners = _owners(model.state_dict())
    stored = {owner: state[name] for name, owner in owners.items() if name in state}
    state = {name: stored[owner] for name, owner in owners.items() if owner in stored} | state
    missing, unexpected = model.load_state_dict(state, strict=strict)
    return missing, unexpected


def storage_ptr(tensor: Tensor) -> int:
    """Return the address of a tensor's memory."""
    return int(tensor.untyped_storage().data_ptr())


def storage_size(tensor: Tensor) -> int:
    """Return the bytes of a tensor's memory."""
    return int(tensor.untyped_storage().nbytes())


def _owners(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return for each name the first, in alphabetical order, whose tensor has the same memory and shape."""
    first: dict[tuple[int, ...], str] = {}
    return {
        name: first.setdefault((*_memory(tensor), *tensor.shape), name) if tensor.numel() else name
        for name, tensor in sorted(state.items())
    }


def _memory(tensor: Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    return start, start + tensor.numel() * tensor.element_size()


def _refuse_shared(tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError if two tensors have memory in common, which a file would hold twice."""
    places = sorted((*_memory(tensor), name) for name, tensor in tensors.items() if tensor.numel())
    for (_, end, name), (start, _, other) in pairwise(places):
        if start < end:
            raise ValueError(f"{name!r} and {other!r} share memory: save a clone() of one, or use save_model")

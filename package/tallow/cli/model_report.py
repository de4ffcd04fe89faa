"""`tallow info MODEL`: tell whether a model loads, its size and its memory, without downloading its weights."""

from __future__ import annotations

import warnings
from math import prod
from pathlib import Path
from typing import Any

from tallow import hub
from tallow.errors import CheckpointError, TallowError, TallowWarning
from tallow.io.gguf import GGUF
from tallow.models.auto import model_class
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG, read_entries
from tallow.models.gguf.config import design_of

MOST_LAYERS = 1000  # each is built, without memory
POSITIONS = 1000  # of a text, for the memory of its keys and values
OTHERS = "a program for transformers and PyTorch may run it on tallow: docs/ecosystem.md"


def model_rows(name: str) -> dict[str, Any]:
    """Return what is known about a folder, a GGUF file, or a repository of the Hub, by name.

    Raises:  HubError, MissingPackageError
    """
    path = Path(name).expanduser()
    if path.is_file():
        return {"model": name, **_file_rows(path), "weights": _size(path.stat().st_size)}
    sizes = hub.file_sizes(name)
    ggufs = {file: size for file, size in sizes.items() if file.endswith(".gguf")}
    rows: dict[str, Any] = {"model": name}
    if CONFIG in sizes:
        folder = path if path.is_dir() else hub.local_file(name, CONFIG).parent
        rows |= _folder_rows(folder, sizes)
    else:
        rows["loads"] = f"by its GGUF files: {name}:FILE" if ggufs else f"no: it has no {CONFIG}"
    rows |= {file: _size(size) for file, size in ggufs.items()}
    return rows


def _folder_rows(folder: Path, sizes: dict[str, int]) -> dict[str, Any]:
    entries = read_entries(folder / CONFIG)
    names = entries.get("architectures")
    known = ", ".join(map(str, names)) if isinstance(names, list) else ""
    rows: dict[str, Any] = {"architecture": known or "unknown"}
    weights = next(
        (total for end in (".safetensors", ".bin") if (total := sum(s for n, s in sizes.items() if n.endswith(end)))), 0
    )
    if weights:
        rows["weights"] = _size(weights)
    try:
        kind: Any = model_class(folder)
    except CheckpointError:
        return rows | {"loads": f"no: tallow has no file for it; {OTHERS}"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TallowWarning)
            config = kind.config_class.from_json(folder / CONFIG)
            if not _can_be_built(config):
                return rows | {"loads": f"no: its {CONFIG} says more than {MOST_LAYERS:,} layers"}
            model = kind(config, device="meta")
    except TallowError as error:
        return rows | {"loads": f"no: {str(error).splitlines()[0]}"}
    rows["loads"] = f"yes, as {kind.__name__}"
    return rows | _memory_rows(model)


def _can_be_built(config: Any) -> bool:
    try:
        config.check_layers(MOST_LAYERS, CONFIG)
    except CheckpointError:
        return False
    return True


def _file_rows(path: Path) -> dict[str, Any]:
    file = GGUF(path)
    try:
        design = design_of(file)
    except CheckpointError as error:
        return {"loads": f"no: {str(error).splitlines()[0]}"}
    return {"architecture": design.names.architecture, "loads": f"yes, as {design.model}"}


def _memory_rows(model: Any) -> dict[str, Any]:
    """Return the number of parameters and the memory of a text."""
    rows = {"parameters": f"{sum(prod(each.shape) for each in model.parameters()):,}"}
    if isinstance(model, CausalLM):
        layers, kv_heads, width = model.cache_shape
        rows["context"] = f"{model.context_length:,} tokens"
        rows["cache"] = f"at most {_size(layers * kv_heads * width * 2 * 4 * POSITIONS)} for {POSITIONS:,} tokens"
    return rows


def _size(count: int) -> str:
    """Return a number of bytes in the largest unit that it reaches."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:.1f} {unit}"
    return f"{count} bytes"

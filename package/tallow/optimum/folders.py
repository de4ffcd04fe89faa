"""Folders with a model in an ONNX file: the file, and the config. What reads the file is imported later."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from tallow.io.model_folder import has_weights
from tallow.models.config import CONFIG, read_entries
from tallow.transformers.configuration import AutoConfig, PreTrainedConfig
from tallow.transformers.configuration_defaults import DEFAULTS

FOLDER = "onnx"
FILES = (f"{FOLDER}/model.onnx", "model.onnx", f"{FOLDER}/model_quantized.onnx", "model_quantized.onnx")


def onnx_file(folder: str | PathLike[str]) -> Path | None:
    """Return the ONNX file of a folder that has no weights of another kind; None if there is none."""
    path = Path(folder)
    if not path.is_dir() or has_weights(path):
        return None
    return next((path / file for file in FILES if (path / file).is_file()), None)


def any_config(folder: str | PathLike[str]) -> Any:
    """Return the config of a folder, also of an architecture that tallow has no file for: its entries as they are.

    Raises:  CheckpointError
    """
    entries = read_entries(Path(folder) / CONFIG)
    model_type = str(entries.get("model_type", ""))
    if model_type in DEFAULTS:
        return AutoConfig.from_pretrained(Path(folder))
    made = PreTrainedConfig.from_dict({**entries, "_name_or_path": str(folder)})
    made.model_type = model_type  # of this object alone
    return made

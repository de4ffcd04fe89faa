"""The common part of the model cards of all models trained here."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np

import tallow
from tallow.io.atomic import atomic_write


def write(path: Path, template: str, training: Any, values: dict[str, Any]) -> None:
    """Write the card of a finished run next to the files of its `export`.

    Args:
        template: the text of the card, with the names of values in braces.
        training: the run; its settings are values, too.
        values: those of this model alone.
    """
    common = {
        "parameters": sum(parameter.numel() for parameter in training.model.parameters()),
        "minutes": training.seconds / 60,
        "device": "a CPU" if training.device == "cpu" else training.device,
        "weight_bytes": (path.parent / "model.safetensors").stat().st_size,
        "version": tallow.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    with atomic_write(path) as file:
        file.write(template.format_map(vars(training.settings) | common | values).encode())

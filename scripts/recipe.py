"""What the trainings of the models in the wheel have in common."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Protocol

from tallow.errors import MissingPackageError
from tallow.io import safetensors
from tallow.io.atomic import atomic_write
from tallow.nn import Module


class Schedule(Protocol):
    """What `learning_rate_factor` reads of a run's settings."""

    @property
    def steps(self) -> int: ...
    @property
    def warmup_steps(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def final_learning_rate(self) -> float: ...


def learning_rate_factor(step: int, settings: Schedule) -> float:
    """The learning rate as a factor: it rises in a line, then falls along half a cosine."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, settings.steps - settings.warmup_steps)
    lowest = settings.final_learning_rate / settings.learning_rate
    return lowest + (1 - lowest) * (1 + math.cos(math.pi * done)) / 2


def save_folder(model: Module, config: dict[str, Any], folder: Path) -> None:
    """Write weights, in float16, and config as a folder of Hugging Face's has them."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.detach().cpu().half() for name, tensor in model.state_dict().items()}
    safetensors.save(state, folder / "model.safetensors", {"format": "pt"})
    with atomic_write(folder / "config.json") as file:
        file.write((json.dumps(config, indent=2) + "\n").encode())


def progress_bar() -> Any:
    """The class tqdm.  Raises: MissingPackageError"""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingPackageError("tqdm", "the progress bar", "train") from error
    return tqdm

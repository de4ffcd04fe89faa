"""Parts of training scripts around the Trainer: seeds, results, kinds of strategies, checkpoints of a folder."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tallow import random as tensor_random
from tallow.core.tensor import Tensor
from tallow.transformers.tensor_types import Choice

PREFIX_CHECKPOINT_DIR = "checkpoint"
_CHECKPOINT = re.compile(rf"{PREFIX_CHECKPOINT_DIR}-(\d+)")


class IntervalStrategy(Choice):
    """When to log or evaluate."""

    NO = "no"
    STEPS = "steps"
    EPOCH = "epoch"


class SaveStrategy(Choice):
    """When to save: "best" means after an evaluation that is the best so far."""

    NO = "no"
    STEPS = "steps"
    EPOCH = "epoch"
    BEST = "best"


class SchedulerType(Choice):
    """The names of the learning rate schedules; see `tallow.transformers.optimization`."""

    LINEAR = "linear"
    COSINE = "cosine"
    COSINE_WITH_RESTARTS = "cosine_with_restarts"
    POLYNOMIAL = "polynomial"
    CONSTANT = "constant"
    CONSTANT_WITH_WARMUP = "constant_with_warmup"
    INVERSE_SQRT = "inverse_sqrt"
    REDUCE_ON_PLATEAU = "reduce_lr_on_plateau"
    COSINE_WITH_MIN_LR = "cosine_with_min_lr"
    COSINE_WARMUP_WITH_MIN_LR = "cosine_warmup_with_min_lr"
    WARMUP_STABLE_DECAY = "warmup_stable_decay"


class EvalPrediction:
    """The argument of `compute_metrics`: read it by attribute, by index, or unpack it into predictions and labels.

    Attributes:
        predictions, label_ids: arrays, or tuples of arrays.
        inputs, losses: with `include_for_metrics`; otherwise None.
    """

    def __init__(self, predictions: Any, label_ids: Any, inputs: Any = None, losses: Any = None) -> None:
        self.predictions, self.label_ids, self.inputs, self.losses = predictions, label_ids, inputs, losses
        self.elements = (predictions, label_ids, *(extra for extra in (inputs, losses) if extra is not None))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.elements)

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self.elements):
            raise IndexError("tuple index out of range")
        return self.elements[index]


class EvalLoopOutput(NamedTuple):
    """The result of `Trainer.evaluation_loop`."""

    predictions: Any
    label_ids: Any
    metrics: dict[str, float] | None
    num_samples: int | None


class PredictionOutput(NamedTuple):
    """The result of `Trainer.predict`."""

    predictions: Any
    label_ids: Any
    metrics: dict[str, float] | None


class TrainOutput(NamedTuple):
    """The result of `Trainer.train`."""

    global_step: int
    training_loss: float
    metrics: dict[str, float]


def set_seed(seed: int, deterministic: bool = False) -> None:
    """Seed the random numbers of Python, NumPy and tallow.

    Args:  deterministic: tallow's results are the same in every run, whatever this says
    """
    del deterministic
    random.seed(seed)
    np.random.seed(seed)
    tensor_random.manual_seed(seed)


def enable_full_determinism(seed: int, warn_only: bool = False) -> None:
    """As `set_seed`: tallow computes the same numbers in every run."""
    del warn_only
    set_seed(seed)


def get_last_checkpoint(folder: str | Path) -> str | None:
    """Return the checkpoint of the most steps in a folder; None if there is none.  Raises: OSError"""
    found = {step: path for path in Path(folder).iterdir() if (step := _step(path)) is not None}
    return str(found[max(found)]) if found else None


def sorted_checkpoints(folder: str | Path) -> list[Path]:
    """Return the checkpoints of a folder, those of fewer steps first."""
    found = [(step, path) for path in Path(folder).glob(f"{PREFIX_CHECKPOINT_DIR}-*") if (step := _step(path))]
    return [path for _, path in sorted(found)]


def rotate_checkpoints(folder: str | Path, limit: int | None, best: str | None) -> None:
    """Remove the oldest checkpoints beyond a limit; the last and the best one stay."""
    checkpoints = sorted_checkpoints(folder)
    if not limit or limit < 0 or len(checkpoints) <= limit:
        return
    kept = {checkpoints[-1], *([Path(best)] if best is not None else [])}
    surplus = len(checkpoints) - max(limit, len(kept))
    for path in [path for path in checkpoints if path not in kept][: max(surplus, 0)]:
        shutil.rmtree(path, ignore_errors=True)


def _step(path: Path) -> int | None:
    found = _CHECKPOINT.fullmatch(path.name)
    return int(found[1]) if found and path.is_dir() else None


def has_length(dataset: Any) -> bool:
    """Return whether `len(dataset)` works."""
    try:
        return isinstance(dataset, Sized) and len(dataset) is not None
    except (TypeError, NotImplementedError):
        return False


def speed_metrics(
    split: str,
    start_time: float,
    num_samples: float | None = None,
    num_steps: int | None = None,
    num_tokens: int | None = None,
) -> dict[str, float]:
    """Return the seconds since `start_time`, and what was done in a second; names start with `split`."""
    runtime = time.time() - start_time
    result = {f"{split}_runtime": round(runtime, 4)}
    for name, count in (("samples", num_samples), ("steps", num_steps), ("tokens", num_tokens)):
        if count is not None and runtime:
            result[f"{split}_{name}_per_second"] = round(count / runtime, 3)
    return result


def denumpify_detensorize(metrics: Any) -> Any:
    """Return metrics as Python's numbers, where they are single numbers."""
    if isinstance(metrics, dict):
        return {name: denumpify_detensorize(value) for name, value in metrics.items()}
    if isinstance(metrics, list | tuple):
        return type(metrics)(map(denumpify_detensorize, metrics))
    if isinstance(metrics, np.generic) or (isinstance(metrics, Tensor) and metrics.numel() == 1):
        return metrics.item()
    return metrics

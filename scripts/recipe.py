"""What the trainings of the models in the wheel have in common: options, how a run is shown, and how it ends."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tallow.errors import TallowError
from tallow.io import safetensors
from tallow.io.atomic import atomic_write
from tallow.nn import Module
from tallow.training import Settings, Training, follow

MODELS = Path(__file__).resolve().parents[1] / "package" / "tallow" / "models"
CACHE = Path(os.environ.get("TALLOW_CACHE") or Path.home() / ".cache" / "tallow")
BAD_INPUT = 2
INTERRUPTED = 130


def parser(
    description: str | None, name: str, defaults: Settings, scores: str
) -> tuple[argparse.ArgumentParser, argparse._MutuallyExclusiveGroup]:
    """The options of all trainings, and those of which one excludes the others.

    Args:
        name: of the model's folder in the package.
        scores: what --evaluate prints.
    """
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = made.add_mutually_exclusive_group()
    task.add_argument("--resume", action="store_true", help="go on from --checkpoint")
    task.add_argument("--evaluate", action="store_true", help=f"print the {scores} of the model in --out")
    made.add_argument("--out", type=Path, default=MODELS / name, help="the model's folder (default: %(default)s)")
    made.add_argument(
        "--checkpoint",
        type=Path,
        default=CACHE / f"train_{name}.safetensors",
        help="where the run is kept while it lasts (default: %(default)s)",
    )
    made.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: %(default)s)")
    made.add_argument("--steps", type=int, default=defaults.steps, help="default: %(default)s")
    made.add_argument("--seed", type=int, default=defaults.seed, help="default: %(default)s")
    return made, task


def status(work: Callable[[], None], name: str) -> int:
    """The exit status of a script that does `work`."""
    try:
        work()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (TallowError, OSError) as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


def train(
    training: Training,
    resume: bool,
    learnt_from: str,
    names: Sequence[str],
    describe: Callable[[list[float]], str],
) -> None:
    """Take the remaining steps of a run.

    Raises:  KeyboardInterrupt when Ctrl-C has stopped it; as `Training.resume` and `Training.run`
    """
    training.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    if resume:
        training.resume()
    parameters = sum(parameter.numel() for parameter in training.model.parameters())
    print(f"{parameters} parameters, {learnt_from} to learn from", file=sys.stderr)
    if not follow(training, describe, names):
        print(f"stopped; {training.checkpoint} holds the run: go on with --resume", file=sys.stderr)
        raise KeyboardInterrupt


def save_folder(model: Module, config: dict[str, Any], folder: Path) -> None:
    """Write weights, in float16, and config as a folder of Hugging Face's has them."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.detach().cpu().half() for name, tensor in model.state_dict().items()}
    safetensors.save(state, folder / "model.safetensors", {"format": "pt"})
    with atomic_write(folder / "config.json") as file:
        file.write((json.dumps(config, indent=2) + "\n").encode())

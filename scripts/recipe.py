"""Shared code of the scripts that train the built-in models: options, progress, exit status."""

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
from tallow.io.whole_folder import atomic_folder
from tallow.nn import Module
from tallow.training import Settings, Training, follow

MODELS = Path(__file__).resolve().parents[1] / "package" / "tallow" / "models" / "built_in"
CACHE = Path(os.environ.get("TALLOW_CACHE") or Path.home() / ".cache" / "tallow")
BAD_INPUT = 2
INTERRUPTED = 130


def parser(
    description: str | None, name: str, defaults: Settings, scores: str
) -> tuple[argparse.ArgumentParser, argparse._MutuallyExclusiveGroup]:
    """Return a parser with the common options, and the group of its mutually exclusive options.

    Args:
        name: the model's folder in the package.
        scores: the scores that --evaluate prints, for the help.
    """
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = result.add_mutually_exclusive_group()
    task.add_argument("--resume", action="store_true", help="continue from --checkpoint")
    task.add_argument("--evaluate", action="store_true", help=f"print the {scores} of the model in --out")
    result.add_argument("--out", type=Path, default=MODELS / name, help="folder of the model (default: %(default)s)")
    result.add_argument(
        "--checkpoint",
        type=Path,
        default=CACHE / f"train_{name}.safetensors",
        help="checkpoint of the run (default: %(default)s)",
    )
    result.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: %(default)s)")
    result.add_argument("--steps", type=int, default=defaults.steps, help="default: %(default)s")
    result.add_argument("--seed", type=int, default=defaults.seed, help="default: %(default)s")
    return result, task


def status(work: Callable[[], None], name: str) -> int:
    """Run `work`; return the exit status of the script."""
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
    data: str,
    names: Sequence[str],
    describe: Callable[[list[float]], str],
) -> None:
    """Run the remaining steps.

    Args:  data: the amount of training data, for the first line of output
    Raises:  KeyboardInterrupt after Ctrl-C; the errors of `Training.resume` and `Training.run`
    """
    training.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    if resume:
        training.resume()
    parameters = sum(parameter.numel() for parameter in training.model.parameters())
    print(f"{parameters} parameters, trained on {data}", file=sys.stderr)
    if not follow(training, describe, names):
        print(f"stopped; continue from {training.checkpoint} with --resume", file=sys.stderr)
        raise KeyboardInterrupt


def save_folder(model: Module, config: dict[str, Any], folder: Path) -> None:
    """Write the weights, in float16, and the configuration as a Hugging Face folder."""
    state = {name: tensor.detach().cpu().half() for name, tensor in model.state_dict().items()}
    with atomic_folder(folder) as stage:
        safetensors.save(state, stage / "model.safetensors", {"format": "pt"})
        (stage / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

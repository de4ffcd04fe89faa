"""Options of `tallow train` for samples in place of texts, and the file of samples."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from tallow import dtypes
from tallow.errors import ArgumentError, DatasetError
from tallow.io.regular import regular_or_pipe

METHODS = ("sft", "dpo")
# Options of `tallow train` that say how a new model or plain texts are trained.
OF_TEXTS = ("width", "layers", "heads", "vocab", "tokenizer", "plot")
LONGEST = 1024  # tokens of a sample


class Method(NamedTuple):
    """A way to learn from samples: its name, "sft" or "dpo", and the file of samples."""

    name: str
    file: Path


def add_options(group: argparse._ArgumentGroup) -> None:
    """Add the options --sft, --dpo and --packing."""
    methods = group.add_mutually_exclusive_group()
    methods.add_argument("--sft", type=Path, metavar="FILE", help="learn texts, conversations or answers to prompts")
    methods.add_argument("--dpo", type=Path, metavar="FILE", help="learn which of two answers is preferred")
    group.add_argument(
        "--packing", action="store_true", help="with --sft: put several samples into a row, so that less is padding"
    )


def method_of(arguments: argparse.Namespace) -> Method | None:
    """Return how to learn from samples; None for texts.

    Raises:  ArgumentError for texts with samples, neither, and options that do not fit
    """
    name = next((name for name in METHODS if getattr(arguments, name) is not None), None)
    if name is None:
        if not arguments.texts:
            raise ArgumentError("there is nothing to train on", hint="pass texts, --sft or --dpo")
        if arguments.packing:
            raise ArgumentError("--packing without --sft", hint="omit it: rows of texts are full")
        return None
    if arguments.texts:
        raise ArgumentError(f"--{name} with texts", hint="pass either")
    if arguments.model is None:
        raise ArgumentError(f"--{name} without --model", hint="pass the model to train")
    if arguments.packing and name != "sft":
        raise ArgumentError(f"--packing with --{name}", hint="omit it")
    for each in OF_TEXTS:
        if getattr(arguments, each) is not None:
            raise ArgumentError(f"--{each} with --{name}", hint="omit it")
    if arguments.dtype == dtypes.float16.name:
        raise ArgumentError(f"--dtype float16 with --{name}", hint="pass bfloat16 or float32")
    if arguments.batch_size % arguments.accumulate:
        raise ArgumentError(
            f"--batch-size {arguments.batch_size} with --accumulate {arguments.accumulate}",
            hint=f"with --{name} pass a multiple of it as --batch-size",
        )
    return Method(name, getattr(arguments, name))


def read_samples(path: Path) -> list[dict[str, Any]]:
    """Return the samples of a file, a JSON object on each line.

    Raises:  DatasetError for a line that is none, and a file without samples; OSError
    """
    samples: list[dict[str, Any]] = []
    with open(path, "rb", opener=regular_or_pipe) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                sample = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DatasetError(f"{path}: line {number} is not JSON: {error}") from error
            if not isinstance(sample, dict):
                raise DatasetError(
                    f"{path}: line {number} is no JSON object", hint='write {"prompt": ...} or {"text": ...}'
                )
            samples.append(sample)
    if not samples:
        raise DatasetError(f"{path} has no samples", hint="write a JSON object on each line")
    return samples

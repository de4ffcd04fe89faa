"""The option --via: a command runs a model by the installed package `transformers`, with tallow in PyTorch's place."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from tallow.hub import local_folder
from tallow.lazy_names import import_name

PACKAGE, HOME = "transformers", "tallow.compat.via"  # the commands start without the stand-in of PyTorch
# What every command has, and what the option needs.
ALWAYS = ("command", "model", "via", "device", "refuse", "options")


def add_via_option(group: Any) -> None:
    """Add the option --via."""
    group.add_argument(
        "--via",
        choices=(PACKAGE,),
        help="run a model that tallow has no file for by the installed package, with tallow in the place of PyTorch",
    )


def load(arguments: argparse.Namespace, taken: Collection[str]) -> tuple[Any, Any, Any]:
    """Return the package, the model and its tokenizer. Options that have no effect are refused.

    Args:    taken: the names of the options that the command passes on
    Raises:  as `load_model`, and as the `from_pretrained` of `transformers`
    """
    parser = arguments.refuse.__self__
    for name, value in vars(arguments).items():
        if name not in (*ALWAYS, *taken) and value != parser.get_default(name):
            arguments.refuse(f"--{name.replace('_', '-')} has no effect with --via")
    transformers = import_name(f"{HOME}:installed")(arguments.via)
    folder = local_folder(arguments.model)
    model = import_name(f"{HOME}:load_model")(folder, arguments.via, device=arguments.device)
    return transformers, model, transformers.AutoTokenizer.from_pretrained(str(folder))

"""Options that commands with a language model share: which model, and how it chooses the next token."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from tallow import dtypes
from tallow.cli.device import add_device_option
from tallow.errors import ArgumentError
from tallow.generation import Sampler
from tallow.hub import local_model
from tallow.models import gguf_llama
from tallow.models.auto import model_class
from tallow.models.causal_lm import CausalLM
from tallow.models.generation_config import GenerationConfig

DTYPES = {d.name: d for d in (dtypes.float32, dtypes.float16, dtypes.bfloat16)}


def load_language_model(name: str, dtype: str | None, device: str) -> CausalLM:
    """The language model of a folder of Hugging Face's, of a repository of its Hub, or of a GGUF file.

    Raises:  ArgumentError for a model of another kind; CheckpointError, HubError
    """
    path = local_model(name)
    target = DTYPES[dtype] if dtype else None
    if path.is_file():
        return gguf_llama.load(path, target, device)
    kind = model_class(path)
    if not issubclass(kind, CausalLM):
        raise ArgumentError(f"{name} is a {kind.__name__}, not a language model", mend="pass one that continues texts")
    return kind.from_pretrained(path, target, device)


def add_loading_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        help="keep the weights in this; sixteen bits save memory (default: as in --model, else float32)",
    )
    add_device_option(group)


def add_sampling_options(parser: argparse.ArgumentParser, *, temperature: float, top_p: float) -> None:
    """The numbers are the defaults for models whose folder does not say how to sample."""
    parser.set_defaults(sampling={"temperature": temperature, "top_p": top_p})
    choice = parser.add_argument_group(
        "choice of the next token", "Without these, as the model's generation_config.json says, if it has one."
    )
    choice.add_argument(
        "--temperature",
        metavar="T",
        type=number(float, "0 or more", lambda t: 0 <= t < float("inf")),
        help=f"0 takes the likeliest token, more is bolder (default: the model's own, else {temperature})",
    )
    choice.add_argument(
        "--top-k",
        metavar="K",
        type=number(int, "0 or more", lambda k: k >= 0),
        help="draw from the K likeliest only, 0 for all (default: the model's own, else all)",
    )
    choice.add_argument(
        "--top-p",
        metavar="P",
        type=number(float, "above 0 and at most 1", lambda p: 0 < p <= 1),
        help="draw from the likeliest tokens that together exceed this probability "
        f"(default: the model's own, else {top_p})",
    )
    choice.add_argument(
        "--min-p",
        metavar="P",
        type=number(float, "0 to 1", lambda p: 0 <= p <= 1),
        help="draw from tokens at least P times as likely as the likeliest (default: the model's own, else all)",
    )
    choice.add_argument(
        "--repetition-penalty",
        metavar="R",
        type=number(float, "above 0", lambda r: 0 < r < float("inf")),
        help="above 1 makes tokens that occurred less likely (default: the model's own, else 1)",
    )
    choice.add_argument(
        "--seed", metavar="N", type=int, help="one seed, one text (default: a random one, shown on stderr)"
    )


def sampler(arguments: argparse.Namespace, config: GenerationConfig) -> Sampler:
    """Of the options of `add_sampling_options`; what they leave open `config` says, or else the command."""
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    usual = arguments.sampling | {"repetition_penalty": config.repetition_penalty}
    options = (usual if config.do_sample is None else config.sampling) | given
    return Sampler(**options | {"top_k": options.get("top_k") or None}, seed=arguments.seed)


def number(kind: Callable[[str], Any], expected: str, holds: Callable[[Any], bool]) -> Callable[[str], Any]:
    """A type for argparse that takes a number within bounds."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not holds(value):
            raise argparse.ArgumentTypeError(f"{text!r}; expected {expected}")
        return value

    return parse

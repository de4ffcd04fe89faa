"""Options that commands with a language model share: loading and sampling."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeVar

from tallow import dtypes
from tallow.cli.device import add_device_option
from tallow.cli.quant import add_quant_option
from tallow.errors import ArgumentError
from tallow.generation import Sampler
from tallow.hub import local_model
from tallow.models.auto import model_class
from tallow.models.causal_lm import CACHE_DTYPES, CausalLM
from tallow.models.generation_config import GenerationConfig
from tallow.models.gguf import models as gguf_models
from tallow.models.pretrained import PretrainedModel
from tallow.models.seq2seq.model import Seq2SeqLM

M = TypeVar("M", bound=PretrainedModel)

DTYPES = {d.name: d for d in (dtypes.float32, dtypes.float16, dtypes.bfloat16)}


def load_language_model(name: str, dtype: str | None, device: str, quant: str | None = None) -> CausalLM:
    """Load the language model from a Hugging Face folder, a Hub repository or a GGUF file.

    Raises:  ArgumentError if it is not a language model; CheckpointError, HubError
    """
    model: CausalLM = load_text_model(name, dtype, device, quant, (CausalLM,))
    return model


def load_text_model(name: str, dtype: str | None, device: str, quant: str | None, kinds: tuple[type, ...]) -> Any:
    """Load a model of one of these classes, as `load_language_model`."""
    path = local_model(name)
    target = DTYPES[dtype] if dtype else None
    if path.is_file():
        model = gguf_models.load(path, target, device)
        if not isinstance(model, CausalLM):
            raise _not_a_language_model(name, type(model))
        return quantized(model, quant, dtype)
    kind = model_class(path)
    if not issubclass(kind, kinds):
        raise _not_a_language_model(name, kind)
    return kind.from_pretrained(path, target, device, quant=quant)


def quantized(model: M, quant: str | None, dtype: str | None) -> M:
    """Quantise a model as the option --quant says, in place; everything else gets `dtype`, by default float32."""
    return model if quant is None else model.quantize(quant, DTYPES[dtype] if dtype else None)


def _not_a_language_model(name: str, kind: type) -> ArgumentError:
    hint = "pass a causal language model"
    if issubclass(kind, Seq2SeqLM):
        hint += "; tallow generate takes this one, too"
    return ArgumentError(f"{name} is a {kind.__name__}, not a language model", hint=hint)


def add_loading_options(group: argparse._ArgumentGroup) -> None:
    """Add the options --dtype, --quant and --device."""
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        help="dtype of the weights; 16 bits save memory (default: that of --model, else float32)",
    )
    add_quant_option(group)
    add_device_option(group)


def add_cache_option(group: argparse._ArgumentGroup) -> None:
    """Add the option --cache-dtype."""
    group.add_argument(
        "--cache-dtype",
        choices=CACHE_DTYPES,
        help="dtype of the keys and values of the text so far; float16 and bfloat16 take half the memory of float32, "
        "int8 about a quarter (default: float32 on a CPU, that of the weights on a GPU)",
    )


def add_sampling_options(parser: argparse.ArgumentParser, *, temperature: float, top_p: float) -> None:
    """Add the sampling options. `temperature` and `top_p` are the defaults for models without a generation config."""
    parser.set_defaults(sampling={"temperature": temperature, "top_p": top_p})
    sampling = parser.add_argument_group(
        "sampling", "The defaults come from the model's generation_config.json, if it has one."
    )
    sampling.add_argument(
        "--temperature",
        metavar="T",
        type=number(float, "0 or more", lambda t: 0 <= t < float("inf")),
        help="0 always chooses the most probable token; higher values give more varied text (default: the model's "
        f"own, else {temperature})",
    )
    sampling.add_argument(
        "--top-k",
        metavar="K",
        type=number(int, "0 or more", lambda k: k >= 0),
        help="sample from the K most probable tokens; 0 means all (default: the model's own, else all)",
    )
    sampling.add_argument(
        "--top-p",
        metavar="P",
        type=number(float, "above 0 and at most 1", lambda p: 0 < p <= 1),
        help="sample from the most probable tokens whose total probability exceeds P "
        f"(default: the model's own, else {top_p})",
    )
    sampling.add_argument(
        "--min-p",
        metavar="P",
        type=number(float, "0 to 1", lambda p: 0 <= p <= 1),
        help="sample from tokens at least P times as probable as the most probable one (default: the model's own, else "
        "all)",
    )
    sampling.add_argument(
        "--repetition-penalty",
        metavar="R",
        type=number(float, "above 0", lambda r: 0 < r < float("inf")),
        help="values above 1 make repeated tokens less probable (default: the model's own, else 1)",
    )
    sampling.add_argument("--seed", metavar="N", type=int, help="random seed (default: random, printed on stderr)")


def sampler(arguments: argparse.Namespace, config: GenerationConfig) -> Sampler:
    """Return the sampler for the options of `add_sampling_options`. Defaults: `config`, then the command's own.

    Warns:  TallowWarning if the config asks for beams
    """
    config.warn_of_beams("this command")
    defaults = arguments.sampling | {"repetition_penalty": config.repetition_penalty}
    options = (defaults if config.do_sample is None else config.sampling) | _overrides(arguments)
    return _sampler(arguments, options)


def own_sampler(arguments: argparse.Namespace, config: GenerationConfig) -> Sampler | None:
    """Return the sampler for the options, or None without any: tokens are chosen as the model says."""
    overrides = _overrides(arguments)
    if not overrides and not config.do_sample:
        return None
    draws = config.do_sample or overrides.keys() - {"repetition_penalty"}
    defaults = config.sampling if config.do_sample or not draws else {"repetition_penalty": config.repetition_penalty}
    return _sampler(arguments, defaults | overrides)


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def _sampler(arguments: argparse.Namespace, options: dict[str, Any]) -> Sampler:
    return Sampler(**options | {"top_k": options.get("top_k") or None}, seed=arguments.seed)


def number(kind: Callable[[str], Any], expected: str, holds: Callable[[Any], bool]) -> Callable[[str], Any]:
    """Return an argparse type that accepts a number for which `holds` is true; `expected` describes it in errors."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not holds(value):
            raise argparse.ArgumentTypeError(f"{text!r}; expected {expected}")
        return value

    return parse


positive_int = number(int, "1 or more", lambda n: n >= 1)

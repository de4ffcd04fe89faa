"""`tallow generate`: continue a text with a language model.

An encoder-decoder model, such as T5, writes another text instead: a translation or a summary.

Without --model, a small built-in model tells a story: tallow generate "Once upon a time". The text may also come from
standard input: echo "Once upon a time" | tallow generate

The text goes to stdout as it is generated; load time, speed and seed go to stderr. Ctrl-C stops and keeps the text.
With --temperature 0, a llama2.c model gives the same text as llama2.c's run.c.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import chain
from typing import TYPE_CHECKING

from tallow.cli import via
from tallow.cli.adapter import add_adapter_option, use_adapter
from tallow.cli.constraint import add_constraint_options, constraint
from tallow.cli.language_model import (
    DTYPES,
    add_cache_option,
    add_loading_options,
    add_sampling_options,
    load_text_model,
    own_sampler,
    positive_int,
    quantized,
    sampler,
)
from tallow.cli.terminal import print_text, prompt_from_stdin, report
from tallow.cli.via import add_via_option
from tallow.errors import ArgumentError
from tallow.generation import Sampler, generate, timed
from tallow.io.gguf import is_gguf
from tallow.models.built_in import stories
from tallow.models.causal_lm import CACHE_DTYPES, CausalLM
from tallow.models.decoders.llama import Llama
from tallow.models.seq2seq.model import Seq2SeqLM
from tallow.random import manual_seed
from tallow.text.llama2c import Llama2cTokenizer
from tallow.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tallow.generation.constrain import Constraint, Grammar


STEPS = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow generate`."""
    model = parser.add_argument_group("model")
    model.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        help="a language model: its folder, a GGUF file, a llama2.c checkpoint, or owner/repository or "
        "owner/repository:file.gguf on the Hugging Face Hub (default: the built-in model)",
    )
    add_adapter_option(model)
    model.add_argument(
        "--tokenizer",
        metavar="FILE",
        help="a llama2.c tokenizer.bin, a tokenizer.json, or a folder with one (default: the model's own; required "
        "with "
        "a llama2.c checkpoint, which has none)",
    )
    add_loading_options(model)
    add_cache_option(model)
    add_via_option(model)
    text = parser.add_argument_group("text")
    prompt = text.add_mutually_exclusive_group()
    prompt.add_argument(
        "text", nargs="?", metavar="TEXT", help="the text to continue (default: standard input, empty at a terminal)"
    )
    prompt.add_argument("-p", "--prompt", metavar="TEXT", help="the same as TEXT")
    text.add_argument(
        "-n",
        "--steps",
        metavar="N",
        type=positive_int,
        help="maximum number of tokens, the prompt of a language model included; limited by the model's context "
        f"(default: {STEPS}; of an encoder-decoder model its own)",
    )
    add_constraint_options(parser)
    add_sampling_options(parser, temperature=1.0, top_p=0.9)


def run(arguments: argparse.Namespace) -> int:
    """Print the text.

    Raises:  TallowError, OSError for invalid input; KeyboardInterrupt, after the summary is printed
    """
    if arguments.via is not None:
        return _by_package(arguments)
    started = time.perf_counter()
    form = constraint(arguments)
    if arguments.adapter is not None and arguments.model is None:
        raise ArgumentError("--adapter without --model", hint="pass the model that the adapter was trained for")
    model = _load(arguments)
    use_adapter(model, arguments.adapter)
    text = arguments.prompt if arguments.text is None else arguments.text
    if text is None:
        text = prompt_from_stdin()
    if isinstance(model, Seq2SeqLM):
        _rewrite(arguments, model, text, form, started)
    else:
        _continue(arguments, model, text, form, started)
    return 0


def _by_package(arguments: argparse.Namespace) -> int:
    """Print the text of a model that the installed package `transformers` runs."""
    if arguments.model is None:
        raise ArgumentError("--via without --model", hint="pass the model")
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    transformers, model, tokenizer = via.load(arguments, ("text", "prompt", "steps", "seed", *names))
    text = arguments.prompt if arguments.text is None else arguments.text
    inputs = tokenizer(prompt_from_stdin() if text is None else text, return_tensors="pt").to(model.device)
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    options = ({} if model.generation_config.do_sample else arguments.sampling) | given
    if options.get("temperature") == 0:
        options = {name: value for name, value in options.items() if name == "repetition_penalty"} | {
            "do_sample": False
        }
    elif options:
        options["do_sample"] = True
    if arguments.seed is not None:
        manual_seed(arguments.seed)
    streamer = transformers.TextStreamer(tokenizer, skip_special_tokens=True)
    model.generate(**inputs, **options, max_length=arguments.steps or STEPS, streamer=streamer)
    return 0


def _rewrite(arguments: argparse.Namespace, model: Seq2SeqLM, text: str, form: Grammar | None, started: float) -> None:
    """Print what an encoder-decoder model writes about the text."""
    sample = own_sampler(arguments, model.generation_config)
    generated = model.generate_ids(
        model.tokenizer.encode_prompt(text),
        max_tokens=arguments.steps,
        sample=sample,
        processors=_processors(form, model),
        cache_dtype=CACHE_DTYPES.get(arguments.cache_dtype),
    )
    _report_start(arguments, sample, started)
    tokens = timed(generated)
    try:
        print_text(model.tokenizer.decode_stream(tokens))
    finally:
        _report_speed(tokens)


def _continue(arguments: argparse.Namespace, model: CausalLM, text: str, form: Grammar | None, started: float) -> None:
    """Print the text and what a language model continues it with."""
    prompt = model.tokenizer.encode_prompt(text)
    sample = sampler(arguments, model.generation_config)
    # run.c counts the positions it feeds to the model: all tokens but the last.
    wanted = arguments.steps or STEPS
    steps = min(wanted, model.context_length)
    count = max(0, steps - len(prompt) + 1)
    rules = model.generation_config.without_sampling.rules(prompt, count, model.stop_ids, model.vocab_size)
    generated = generate(
        model,
        prompt,
        max_tokens=count,
        sample=sample,
        stop_ids=model.stop_ids,
        processors=[*rules, *_processors(form, model)],
        cache_dtype=CACHE_DTYPES.get(arguments.cache_dtype),
    )
    _report_start(arguments, sample, started)
    if steps < wanted:
        report(f"--steps {wanted} exceeds the model's context; stopping at {steps}")
    if len(prompt) > steps + 1:  # run.c prints as much of it
        text = "".join(model.tokenizer.decode_stream(prompt[: steps + 1]))
    tokens = timed(generated)
    try:
        print_text(chain([text], model.tokenizer.decode_stream(tokens, previous=prompt)))
    finally:
        _report_speed(tokens)


def _report_start(arguments: argparse.Namespace, sample: Sampler | None, started: float) -> None:
    """Report what was loaded, and the seed."""
    report(f"loaded {arguments.model or 'stories'} in {time.perf_counter() - started:.2f} s")
    if sample is not None and sample.temperature > 0:
        report(f"seed {sample.seed}")


def _report_speed(tokens: timed) -> None:
    """Report the number of tokens and their speed."""
    report(f"{tokens.count} tokens" + (f", {tokens.per_second:.0f} tokens/s" if tokens.per_second else ""))


def _load(arguments: argparse.Namespace) -> CausalLM | Seq2SeqLM:
    """Load the model, with its tokenizer."""
    path, dtype = arguments.model, DTYPES.get(arguments.dtype)
    if path is None:
        if arguments.tokenizer is not None:
            raise ArgumentError("--tokenizer without --model", hint="pass both, or neither to use the built-in model")
        story_teller, _ = stories.load(dtype=dtype, device=arguments.device)
        return quantized(story_teller, arguments.quant, arguments.dtype)
    if not _is_llama2c(path):
        model = load_text_model(path, arguments.dtype, arguments.device, arguments.quant, (CausalLM, Seq2SeqLM))
    elif arguments.tokenizer is None:
        raise ArgumentError(
            f"{path} is a file without a tokenizer",
            hint="pass the model's folder or a GGUF file, or with a llama2.c checkpoint --tokenizer tokenizer.bin",
        )
    else:
        model = Llama.from_llama2c(path, dtype=dtype, device=arguments.device)
        model = quantized(model, arguments.quant, arguments.dtype)
    if arguments.tokenizer is None:
        return model
    if os.path.isdir(arguments.tokenizer) or arguments.tokenizer.endswith(".json"):
        model.tokenizer = Tokenizer.from_pretrained(arguments.tokenizer)
    elif isinstance(model, Seq2SeqLM):
        raise ArgumentError(f"--tokenizer {arguments.tokenizer}", hint="pass the model's tokenizer.json")
    else:
        model.tokenizer = Llama2cTokenizer.load(arguments.tokenizer, vocab_size=model.vocab_size)
    return model


def _is_llama2c(path: str) -> bool:
    """Return whether `path` names a llama2.c checkpoint: it ends in .bin, or is a file but not GGUF."""
    return path.endswith(".bin") or (os.path.isfile(path) and not path.endswith(".gguf") and not is_gguf(path))


def _processors(form: Grammar | None, model: CausalLM | Seq2SeqLM) -> list[Constraint]:
    """Return what keeps the text to its form."""
    return [] if form is None else [model.constraint(form)]

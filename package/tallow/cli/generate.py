"""`tallow generate`: continue a text with a language model.

Without --model a small one that comes with tallow tells a story: tallow generate "Once upon a time". The text may also
come from another program: echo "Once upon a time" | tallow generate

Text goes to stdout as it is made; loading, speed and the seed go to stderr. Ctrl-C stops, and keeps the text.
With --temperature 0 a llama2.c model's text is, word for word, that of llama2.c's run.c.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from itertools import chain, islice

from tallow.cli.language_model import (
    DTYPES,
    add_loading_options,
    add_sampling_options,
    load_language_model,
    number,
    sampler,
)
from tallow.cli.terminal import print_text, prompt_from_stdin, report
from tallow.errors import ArgumentError
from tallow.generation import decode_stream, generate
from tallow.io.gguf import is_gguf
from tallow.models import stories
from tallow.models.causal_lm import CausalLM
from tallow.models.llama import Llama
from tallow.text.llama2c import Llama2cTokenizer
from tallow.text.tokenizer import Tokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        metavar="MODEL",
        help="the folder of a language model, a GGUF file, owner/repository or owner/repository:file.gguf of the Hub, "
        "or a llama2.c checkpoint (default: the one that comes with tallow)",
    )
    model.add_argument(
        "--tokenizer",
        metavar="FILE",
        help="a tokenizer.bin of llama2.c's format, a tokenizer.json, or a folder with one (default: what the model "
        "brings; a llama2.c checkpoint brings none)",
    )
    add_loading_options(model)
    text = parser.add_argument_group("text")
    prompt = text.add_mutually_exclusive_group()
    prompt.add_argument(
        "text", nargs="?", metavar="TEXT", help="what to continue (default: standard input, or nothing at a terminal)"
    )
    prompt.add_argument("--prompt", metavar="TEXT", help="the same")
    text.add_argument(
        "--steps",
        metavar="N",
        type=number(int, "1 or more", lambda n: n >= 1),
        default=256,
        help="tokens of prompt and text together, at most the model's context (default: %(default)s)",
    )
    add_sampling_options(parser, temperature=1.0, top_p=0.9)


def run(arguments: argparse.Namespace) -> int:
    """Print the text.  Raises: TallowError, OSError for what cannot be used; KeyboardInterrupt, after its report"""
    started = time.perf_counter()
    model, tokenizer = _load(arguments)
    given = arguments.prompt if arguments.text is None else arguments.text
    text = prompt_from_stdin() if given is None else given
    prompt, stop_ids = _prompt(model, tokenizer, text)
    sample = sampler(arguments, model.generation_config)
    # run.c counts the positions it feeds: all of the text but its last token.
    steps = min(arguments.steps, model.context_length)
    made = generate(model, prompt, max_tokens=max(0, steps - len(prompt) + 1), sample=sample, stop_ids=stop_ids)
    report(f"loaded {arguments.model or 'stories'} in {time.perf_counter() - started:.2f} s")
    if steps < arguments.steps:
        report(f"--steps {arguments.steps} is more than the model's context; stopping at {steps}")
    if sample.temperature > 0:
        report(f"seed {sample.seed}")
    clock = _Clock(made)
    try:
        if isinstance(tokenizer, Llama2cTokenizer):
            print_text(decode_stream(tokenizer, islice(chain(prompt[1:], clock), steps), previous=prompt[0]))
        else:
            print_text(chain([text], tokenizer.decode_stream(clock, previous=prompt)))
    finally:
        report(clock.summary())
    return 0


def _load(arguments: argparse.Namespace) -> tuple[CausalLM, Llama2cTokenizer | Tokenizer]:
    path, dtype = arguments.model, DTYPES.get(arguments.dtype)
    if path is None:
        if arguments.tokenizer is not None:
            raise ArgumentError(
                "--tokenizer without --model", mend="pass both, or neither for the model of tallow's own"
            )
        return stories.load(dtype=dtype, device=arguments.device)
    if not _is_llama2c(path):
        model = load_language_model(path, arguments.dtype, arguments.device)
    elif arguments.tokenizer is None:
        raise ArgumentError(
            "--model without --tokenizer: a llama2.c checkpoint has no tokenizer in it", mend="pass its tokenizer.bin"
        )
    else:
        model = Llama.from_llama2c(path, dtype=dtype, device=arguments.device)
    if arguments.tokenizer is None:
        return model, model.tokenizer
    if os.path.isdir(arguments.tokenizer) or arguments.tokenizer.endswith(".json"):
        model.tokenizer = Tokenizer.from_pretrained(arguments.tokenizer)
        return model, model.tokenizer
    return model, Llama2cTokenizer.load(arguments.tokenizer, vocab_size=model.vocab_size)


def _is_llama2c(path: str) -> bool:
    """Whether llama2.c's checkpoint is meant: by its name, which is none for the Hub, or a file that is not GGUF."""
    return path.endswith(".bin") or (os.path.isfile(path) and not path.endswith(".gguf") and not is_gguf(path))


def _prompt(model: CausalLM, tokenizer: Llama2cTokenizer | Tokenizer, text: str) -> tuple[list[int], frozenset[int]]:
    """The ids of the text, after BOS where the tokenizer puts it, and those that end what follows."""
    if isinstance(tokenizer, Llama2cTokenizer):
        return tokenizer.encode(text, bos=True), frozenset(model.config.eos_token_id)
    prompt = tokenizer.encode(text)
    if not prompt and tokenizer.bos_token_id is not None:
        prompt = [tokenizer.bos_token_id]
    return prompt, model.stop_ids


class _Clock:
    """Passes tokens on and times them. The first is left out: it waits for the whole prompt."""

    def __init__(self, tokens: Iterator[int]) -> None:
        self._tokens = tokens
        self._count = 0
        self._first = self._last = 0.0

    def __iter__(self) -> Iterator[int]:
        for token in self._tokens:
            self._last = time.perf_counter()
            self._first = self._first or self._last
            self._count += 1
            yield token

    def summary(self) -> str:
        seconds = self._last - self._first
        speed = f", {(self._count - 1) / seconds:.0f} tokens/s" if seconds > 0 else ""
        return f"{self._count} tokens{speed}"

"""`tallow generate`: continue a text with a language model.

Text goes to stdout as it is made; loading, speed and the seed go to stderr. Ctrl-C stops, and keeps the text.
With --temperature 0 the text is, word for word, that of llama2.c's run.c.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from tallow import dtypes
from tallow.generation import Sampler, decode_stream, generate
from tallow.models.llama import Llama
from tallow.text.llama2c import Llama2cTokenizer

DTYPES = {d.name: d for d in (dtypes.float32, dtypes.float16, dtypes.bfloat16)}

# What could move a terminal's cursor or worse; run.c leaves such bytes out, too.
CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - set(map(ord, "\t\n\v\f\r")))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model", required=True, metavar="FILE", help="a llama2.c checkpoint, or a folder of a Hugging Face Llama"
    )
    model.add_argument("--tokenizer", required=True, metavar="FILE", help="its tokenizer.bin, of llama2.c's format")
    model.add_argument(
        "--dtype", choices=DTYPES, help="keep the weights in this; sixteen bits save memory (default: as in the file)"
    )
    model.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: %(default)s)")
    text = parser.add_argument_group("text")
    text.add_argument("--prompt", default="", metavar="TEXT", help="what to continue (default: nothing)")
    text.add_argument(
        "--steps",
        metavar="N",
        type=_number(int, "1 or more", lambda n: n >= 1),
        default=256,
        help="tokens of prompt and text together, at most the model's context (default: %(default)s)",
    )
    choice = parser.add_argument_group("choice of the next token")
    choice.add_argument(
        "--temperature",
        metavar="T",
        type=_number(float, "0 or more", lambda t: 0 <= t < float("inf")),
        default=1.0,
        help="0 takes the likeliest token, more is bolder (default: %(default)s)",
    )
    choice.add_argument(
        "--top-k",
        metavar="K",
        type=_number(int, "1 or more", lambda k: k >= 1),
        help="draw from the K likeliest only (default: all)",
    )
    choice.add_argument(
        "--top-p",
        metavar="P",
        type=_number(float, "above 0 and at most 1", lambda p: 0 < p <= 1),
        default=0.9,
        help="draw from the likeliest tokens that together exceed this probability (default: %(default)s)",
    )
    choice.add_argument(
        "--repetition-penalty",
        metavar="R",
        type=_number(float, "above 0", lambda r: 0 < r < float("inf")),
        default=1.0,
        help="above 1 makes tokens that occurred less likely (default: %(default)s)",
    )
    choice.add_argument(
        "--seed", metavar="N", type=int, help="one seed, one text (default: a random one, shown on stderr)"
    )


def _number(kind: Callable[[str], Any], expected: str, holds: Callable[[Any], bool]) -> Callable[[str], Any]:
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


def run(arguments: argparse.Namespace) -> int:
    """Print the text.  Raises: TallowError, OSError for what cannot be used; KeyboardInterrupt, after its report"""
    started = time.perf_counter()
    model = _load(arguments)
    tokenizer = Llama2cTokenizer.load(arguments.tokenizer, vocab_size=model.vocab_size)
    prompt = tokenizer.encode(arguments.prompt, bos=True)
    sample = Sampler(
        arguments.temperature, arguments.top_k, arguments.top_p, arguments.repetition_penalty, arguments.seed
    )
    # run.c counts the positions it feeds: all of the text but its last token.
    steps = min(arguments.steps, model.context_length)
    made = generate(
        model,
        prompt,
        max_tokens=max(0, steps - len(prompt) + 1),
        sample=sample,
        stop_ids=set(model.config.eos_token_id),
    )
    _report(f"loaded {arguments.model} in {time.perf_counter() - started:.2f} s")
    if steps < arguments.steps:
        _report(f"--steps {arguments.steps} is more than the model's context; stopping at {steps}")
    if arguments.temperature > 0:
        _report(f"seed {sample.seed}")
    clock = _Clock(made)
    try:
        _print_text(decode_stream(tokenizer, islice(chain(prompt[1:], clock), steps), previous=prompt[0]))
    finally:
        _report(clock.summary())
    return 0


def _load(arguments: argparse.Namespace) -> Llama:
    load = Llama.from_pretrained if os.path.isdir(arguments.model) else Llama.from_llama2c
    return load(arguments.model, dtype=DTYPES.get(arguments.dtype), device=arguments.device)


def _print_text(pieces: Iterator[str]) -> None:
    """Write each piece at once, and a newline at the end, also when interrupted."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character should not end the story
    try:
        for piece in pieces:
            sys.stdout.write(piece.translate(CONTROLS))
            sys.stdout.flush()
    finally:
        sys.stdout.write("\n")
        sys.stdout.flush()


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


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

"""`tallow chat`: talk with a language model.

Ctrl-C stops an answer, which stays in the conversation as far as it came; /reset begins a new conversation; /exit or
Ctrl-D leaves. Without a terminal, each line of standard input is what the user says next.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from tallow.cli.language_model import add_loading_options, add_sampling_options, load_language_model, number, sampler
from tallow.cli.terminal import lines_of_stdin, print_text, report
from tallow.errors import ArgumentError, TallowError, TokenizerError
from tallow.generation import PromptCache, Sampler
from tallow.models.causal_lm import CausalLM

PROMPT = "> "
EXAMPLE = "Qwen/Qwen3-0.6B"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        metavar="MODEL",
        help="a language model that is trained to chat: its folder, a GGUF file, owner/repository of the Hub, such as "
        f"{EXAMPLE}, or owner/repository:file.gguf",
    )
    add_loading_options(model)
    chat = parser.add_argument_group("conversation")
    chat.add_argument("--system", metavar="TEXT", help="what the model is told before the conversation")
    chat.add_argument(
        "--max-tokens",
        metavar="N",
        type=number(int, "1 or more", lambda n: n >= 1),
        help="tokens of an answer at most (default: as many as the model's context holds)",
    )
    add_sampling_options(parser, temperature=0.7, top_p=0.9)


def run(arguments: argparse.Namespace) -> int:
    """Raises: TallowError, OSError for what cannot be used; without a terminal, KeyboardInterrupt"""
    if arguments.model is None:
        raise ArgumentError(
            "--model is missing: the one that comes with tallow tells stories, and cannot chat",
            mend=f"pass a folder, a GGUF file or a repository of the Hub: tallow chat --model {EXAMPLE}",
        )
    model = load_language_model(arguments.model, arguments.dtype, arguments.device)
    if model.tokenizer.chat_template is None:
        raise TokenizerError(
            f"{arguments.model} has no chat template, so it is not trained to chat",
            mend="continue a text with `tallow generate`, or take a model called -Instruct or -Chat",
        )
    sample = sampler(arguments, model.generation_config)
    if sample.temperature > 0:
        report(f"seed {sample.seed}")
    conversation = Conversation(model, arguments.system, arguments.max_tokens, sample)
    if sys.stdin.isatty():
        _converse_in_terminal(conversation)
    else:
        _answer_lines(conversation, map(str.strip, lines_of_stdin()))
    return 0


class Conversation:
    """What was said, and what the model has read of it."""

    def __init__(self, model: CausalLM, system: str | None, max_tokens: int | None, sample: Sampler) -> None:
        self._model = model
        self._cache = PromptCache(model)
        self._options: dict[str, Any] = {"max_tokens": max_tokens, "sample": sample}
        self._system = [] if system is None else [{"role": "system", "content": system}]
        self.reset()

    def reset(self) -> None:
        """Forget everything but the system's message."""
        self.messages = list(self._system)

    def say(self, text: str) -> Iterator[str]:
        """Pieces of the answer. As many as were taken become part of the conversation, with what was said."""
        messages = [*self.messages, {"role": "user", "content": text}]
        pieces = self._model.chat(messages, cache=self._cache, **self._options)
        answer = {"role": "assistant", "content": ""}
        self.messages = [*messages, answer]
        for piece in pieces:
            answer["content"] += piece
            yield piece


def _converse_in_terminal(conversation: Conversation) -> None:
    """With line editing and a history where Python has them, until /exit or Ctrl-D."""
    with suppress(ImportError):
        import readline  # noqa: F401
    report("Ctrl-C stops an answer, /reset begins anew, /exit or Ctrl-D leaves")
    while True:
        try:
            _answer_lines(conversation, _typed_lines())
            return
        except KeyboardInterrupt:  # whatever was going on: an answer stays as far as it came, a line is dropped
            print()
        except TallowError as error:  # such as a context that is full: /reset helps
            report(str(error))
        except EOFError:
            print()
            return


def _typed_lines() -> Iterator[str]:
    while True:
        yield input(PROMPT).strip()


def _answer_lines(conversation: Conversation, lines: Iterable[str]) -> None:
    for line in lines:
        if line == "/exit":
            return
        if line == "/reset":
            conversation.reset()
        elif line:
            print_text(conversation.say(line))

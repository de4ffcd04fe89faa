"""`tallow chat`: chat with a language model.

Ctrl-C stops an answer; the part already printed stays in the conversation. /reset starts a new conversation; /exit,
/quit or Ctrl-D quits; /help says so. If standard input is not a terminal, each of its lines is one message.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tallow.cli.adapter import add_adapter_option, use_adapter
from tallow.cli.constraint import add_constraint_options, constraint
from tallow.cli.language_model import (
    add_cache_option,
    add_loading_options,
    add_sampling_options,
    load_language_model,
    positive_int,
    sampler,
)
from tallow.cli.terminal import lines_of_stdin, print_text, report
from tallow.errors import ArgumentError, TallowError, TokenizerError
from tallow.generation import PromptCache, Sampler
from tallow.generation.channels import ANSWER, has_channels, marks_of
from tallow.models.causal_lm import CACHE_DTYPES, CausalLM

if TYPE_CHECKING:
    from tallow.generation.constrain import Grammar

PROMPT = "> "
HELP = "Ctrl-C stops an answer, /reset starts a new conversation, /exit, /quit or Ctrl-D quits"
EXAMPLE = "Qwen/Qwen3-0.6B"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow chat`."""
    model = parser.add_argument_group("model")
    model.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        help="a chat model: its folder, a GGUF file, owner/repository on the Hugging Face Hub such as "
        f"{EXAMPLE}, or owner/repository:file.gguf",
    )
    add_adapter_option(model)
    add_loading_options(model)
    add_cache_option(model)
    chat = parser.add_argument_group("conversation")
    chat.add_argument("--system", metavar="TEXT", help="the system message")
    chat.add_argument(
        "-n",
        "--max-tokens",
        metavar="N",
        type=positive_int,
        help="maximum number of tokens per answer (default: limited by the model's context)",
    )
    add_constraint_options(parser)
    add_sampling_options(parser, temperature=0.7, top_p=0.9)


def run(arguments: argparse.Namespace) -> int:
    """Chat until the input ends.

    Raises:  TallowError, OSError for invalid input; without a terminal, KeyboardInterrupt
    """
    if arguments.model is None:
        raise ArgumentError(
            "--model is missing: the built-in model tells stories and cannot chat",
            hint=f"pass a folder, a GGUF file or a Hub repository: tallow chat --model {EXAMPLE}",
        )
    form = constraint(arguments)
    model = load_language_model(arguments.model, arguments.dtype, arguments.device, arguments.quant)
    use_adapter(model, arguments.adapter)
    if model.tokenizer.chat_template is None:
        raise TokenizerError(
            f"{arguments.model} has no chat template, so it is not a chat model",
            hint="use `tallow generate`, or choose a model named -Instruct or -Chat",
        )
    sample = sampler(arguments, model.generation_config)
    if sample.temperature > 0:
        report(f"seed {sample.seed}")
    cache = PromptCache(model, cache_dtype=CACHE_DTYPES.get(arguments.cache_dtype))
    conversation = Conversation(model, arguments.system, arguments.max_tokens, sample, cache, form)
    if sys.stdin.isatty():
        _converse_in_terminal(conversation)
    else:
        _answer_lines(conversation, map(str.strip, lines_of_stdin()))
    return 0


class Conversation:
    """The messages of a conversation and the model's cache of them."""

    def __init__(
        self,
        model: CausalLM,
        system: str | None,
        max_tokens: int | None,
        sample: Sampler,
        cache: PromptCache,
        form: Grammar | None,
    ) -> None:
        self._model = model
        self._cache = cache
        self._has_channels = has_channels(marks_of(model.tokenizer).values())
        self._options: dict[str, Any] = {"max_tokens": max_tokens, "sample": sample, "grammar": form}
        self._system = [] if system is None else [{"role": "system", "content": system}]
        self.reset()

    def reset(self) -> None:
        """Remove all messages but the system message."""
        self.messages = list(self._system)

    def say(self, text: str) -> Iterator[str]:
        """Send a message and yield pieces of the answer. The conversation keeps the pieces that were consumed."""
        messages = [*self.messages, {"role": "user", "content": text}]
        pieces = self._model.chat(messages, cache=self._cache, **self._options)
        answer = {"role": "assistant", "content": ""}
        self.messages = [*messages, answer]
        whole = ""
        for piece in pieces:
            whole += piece
            # Templates leave out the reasoning of earlier answers, except those of models with channels.
            answer["content"] = whole.rpartition(ANSWER)[2] if self._has_channels else whole
            yield piece


def _converse_in_terminal(conversation: Conversation) -> None:
    """Chat until /exit or Ctrl-D, with line editing and a history if Python has readline."""
    with suppress(ImportError):
        import readline  # noqa: F401
    report(HELP)
    while True:
        try:
            _answer_lines(conversation, _typed_lines())
            return
        except KeyboardInterrupt:  # keeps a partial answer, drops a partial line
            print()
        except TallowError as error:  # for example a full context, which /reset clears
            report(str(error))
        except EOFError:
            print()
            return


def _typed_lines() -> Iterator[str]:
    while True:
        yield input(PROMPT).strip()


def _answer_lines(conversation: Conversation, lines: Iterable[str]) -> None:
    for line in lines:
        if line in ("/exit", "/quit"):
            return
        if line == "/reset":
            conversation.reset()
        elif line == "/help":
            report(HELP)
        elif line:
            print_text(conversation.say(line))

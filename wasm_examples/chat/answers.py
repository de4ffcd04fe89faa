"""Settings and counts that the models of the chat page share, and the end of an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tallow.errors import ArgumentError
from tallow.generation import Sampler, timed

Message = dict[str, Any]
Answer = tuple[str, dict[str, Any]]

MAX_INVISIBLE = 64  # tokens in a row without text, after which an answer ends: only a damaged model writes more


class ContextFull(ArgumentError):
    """A conversation leaves no room for an answer. The page offers to forget the oldest messages."""


@dataclass(frozen=True)
class Settings:
    """Options of an answer.

    Attributes:
        temperature, top_p, seed: as for `Sampler`.
        max_tokens: the most tokens of an answer.
        context: the most tokens of the conversation and the answer together; None means the model's context.
        schema: a JSON schema, as JSON, of which the answer is an instance; empty for any JSON object; None for text.
        thinks: whether the model thinks before it answers, if its chat template can choose.
        tools: whether the model can call the tools of tools.py, if its chat template tells of them, in a text.
    """

    temperature: float
    top_p: float
    seed: int
    max_tokens: int
    context: int | None = None
    schema: str | None = None
    thinks: bool = True
    tools: bool = False

    @property
    def offers_tools(self) -> bool:
        """True if the model can call tools: an answer in JSON calls none."""
        return self.tools and self.schema is None

    def sampler(self) -> Sampler:
        return Sampler(temperature=self.temperature, top_p=self.top_p, seed=self.seed)

    def room(self, length: int, context: int) -> int:
        """Return the most tokens of an answer to a conversation of `length` tokens.

        Raises:  ContextFull if there is none
        """
        context = min(self.context or context, context)
        if length >= context:
            raise ContextFull(
                f"the conversation has {length} tokens, and the context is {context}",
                hint="edit an earlier message, start a new conversation, or raise the context length if the model's "
                "is longer",
            )
        return min(self.max_tokens, context - length)


class Counts:
    """The counts of an answer, which the page shows: its tokens and their speed, and the seconds for the prompt."""

    def __init__(self, prompt_tokens: int, limit: int) -> None:
        self.shown: dict[str, float] = {"prompt_tokens": prompt_tokens, "reused": 0, "read": 0, "limit": limit}
        self.shown |= timed(()).stats
        self._started = time.perf_counter()
        self._invisible = 0

    def tokens(self, tokens: Iterator[int]) -> Iterator[int]:
        """Yield the tokens of the answer, and count them."""
        clock = timed(tokens, since=self._started)
        for token in clock:
            self.shown |= clock.stats
            self._invisible += 1
            yield token
            if self._invisible > MAX_INVISIBLE:
                return

    def pieces(self, pieces: Iterator[str]) -> Iterator[Answer]:
        """Yield the pieces of the answer with the counts so far."""
        for piece in pieces:
            self._invisible = 0
            yield piece, self.shown
        yield "", self.shown  # the last tokens may have no text

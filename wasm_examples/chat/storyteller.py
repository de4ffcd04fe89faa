"""The packaged model answers: it knows stories only, so every answer is one, or goes on with the last one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from answers import Answer, Counts, Message, Settings

from tallow.generation import PromptCache
from tallow.models import stories

OPENING = "Once upon a time"
# "Tell me a story about a fox" becomes "Once upon a time there was a fox".
REQUEST = re.compile(
    r"\b(?:story|tale|tell|write)\b(?:.*?\b(?:about|of|with)\s+(?P<whom>.+))?", re.IGNORECASE | re.DOTALL
)
GO_ON = re.compile(r"\W*(?:more|go on|continue|and then|what (?:next|happened|happens)\b.*)\W*", re.IGNORECASE)
MAX_WHOM = 80  # characters
FEWEST_WORDS = 3  # of a text that is the beginning of a story


class Storyteller:
    """The packaged model and its cache."""

    def __init__(self) -> None:
        self.model, _ = stories.load()
        self._cache = PromptCache(self.model)

    def traits(self) -> dict[str, Any]:
        return {"chats": False, "thinks": False, "constrains": False, "tools": False}

    def answer(self, messages: list[Message], settings: Settings) -> Iterator[Answer]:
        tokens, opening = self._encode(messages)
        limit = settings.room(len(tokens), self.model.context_length)
        counts = Counts(len(tokens), limit)
        counts.shown |= {"reused": self._cache.shared(tokens), "read": len(tokens)}
        generated = self._cache.generate(
            tokens, max_tokens=limit, sample=settings.sampler(), stop_ids=self.model.stop_ids
        )
        yield opening, counts.shown
        yield from counts.pieces(self.model.tokenizer.decode_stream(counts.tokens(generated), previous=tokens))

    def count(self, messages: list[Message], settings: Settings) -> int:
        """Return the number of tokens that an answer goes on from."""
        return len(self._encode(messages)[0])

    def _encode(self, messages: list[Message]) -> tuple[list[int], str]:
        """Return the tokens that an answer goes on from, and the words with which it begins."""
        told, opening = _beginning(messages)
        tokens = self.model.tokenizer.encode_prompt(told + opening)
        longest = self.model.context_length
        if told and len(tokens) > longest // 2:  # of a long story, the model sees the end
            tokens = [tokens[0], *tokens[-longest // 2 :]]
        return tokens, opening


def _beginning(messages: list[Message]) -> tuple[str, str]:
    """Return the story so far, if the answer goes on with it, and the words with which the answer begins."""
    asked = " ".join(messages[-1]["content"].split())
    earlier = [message["content"] for message in messages if message["role"] == "assistant"]
    if earlier and GO_ON.fullmatch(asked):
        return earlier[-1], ""
    if request := REQUEST.search(asked):
        whom = (request["whom"] or "").rstrip(".!? ")[:MAX_WHOM]
        return "", f"{OPENING} there was {whom}" if whom else OPENING
    return "", asked if len(asked.split()) >= FEWEST_WORDS else OPENING

"""Answers of gpt-oss, in the format "harmony": messages in channels, for reasoning, calls of tools and the text.

<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Rome"}<|call|>

Source:  https://github.com/openai/harmony, `docs/format.md`
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from tallow.generation.channels import ANSWER, CHANNEL, ENDS, MESSAGE, THINK
from tallow.generation.tools import Arguments, Call, Piece, Reasoning, Text

_END = re.compile("|".join(map(re.escape, ENDS)))
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([^\s<]+)")
SHOWN = ("final", "commentary")  # channels that readers see; in the others a model reasons


class HarmonyReader:
    """Finds the reasoning, the calls and the text in an answer that comes in pieces; arguments come in pieces, too.

    Args:    names: of the tools
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""  # not delivered yet: the beginning of a header, or of a mark
        self._kind: type[Text | Reasoning | Arguments] | None = None  # of the message; None within a header
        self._sought = 0  # where the end of a header may begin

    def push(self, text: str) -> list[Piece]:
        """Return what a piece of text adds."""
        self._held += text
        pieces: list[Piece] = []
        while True:
            if self._kind is None:
                if (place := self._held.find(MESSAGE, self._sought)) < 0:
                    self._sought = max(0, len(self._held) - len(MESSAGE) + 1)
                    return pieces
                header, self._held, self._sought = self._held[:place], self._held[place + len(MESSAGE) :], 0
                pieces += self._begin(header)
            end = _END.search(self._held)
            place = end.start() if end else _beginning_of_mark(self._held)
            if self._kind is not None and place:
                pieces.append(self._kind(self._held[:place]))
            self._held = self._held[end.end() if end else place :]
            if end is None:
                return pieces
            self._kind = None
            if end[0] == CHANNEL:  # the header of a message that has no start
                self._held = CHANNEL + self._held

    def finish(self) -> list[Piece]:
        """Return what was held back at the end of the text: its last characters, or a text without channels."""
        held, self._held = self._held, ""
        if self._kind is None:
            return [] if not held or _END.search(held) or held.strip() == "assistant" else [Text(held)]
        return [self._kind(held)] if held else []

    def _begin(self, header: str) -> list[Piece]:
        """Begin a message."""
        channel, recipient = _CHANNEL.search(header), _RECIPIENT.search(header)
        if recipient is not None and recipient[1] in self._names:
            self._kind = Arguments
            return [Call(recipient[1], "")]
        is_shown = recipient is None and (channel is None or channel[1] in SHOWN)
        self._kind = Text if is_shown else Reasoning
        return []


def with_reasoning(texts: Iterable[str]) -> Iterator[str]:
    """Yield the text of an answer in channels, which comes in pieces; reasoning stands between <think> and </think>."""
    reader, is_reasoning = HarmonyReader(()), False
    for pieces in chain(map(reader.push, texts), map(HarmonyReader.finish, [reader])):
        for piece in pieces:
            if isinstance(piece, Call):
                continue  # there are no tools
            if isinstance(piece, Reasoning) != is_reasoning:
                is_reasoning = not is_reasoning
                yield THINK if is_reasoning else ANSWER
            yield piece.text


def _beginning_of_mark(text: str) -> int:
    """Return where the end of a text may be the beginning of a mark; the length of the text if it is not."""
    place = text.rfind("<")
    return place if place >= 0 and any(mark.startswith(text[place:]) for mark in ENDS) else len(text)

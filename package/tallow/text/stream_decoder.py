"""Turn ids into text as they come, in pieces that never split a character."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from tallow.text.clean_up import StreamCleanUp

UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # decoded from an incomplete character
CONTEXT = 8  # ids of a prompt that determine whether a space precedes the next token


class TextDecoder(Protocol):
    """Turns ids into text, one at a time."""

    def push(self, token: int) -> str:
        """Return the text that an id completes; it may be empty."""

    def finish(self) -> str:
        """Return the text that waited for further ids, such as an incomplete character at the end. Ids may follow."""


def pieces_of(decoder: TextDecoder, tokens: Iterable[int]) -> Iterator[str]:
    """Yield the text of tokens as they come, without empty pieces."""
    for token in tokens:
        if text := decoder.push(token):
            yield text
    if text := decoder.finish():
        yield text


class ByteDecoder(TextDecoder):
    """Turns ids into text, where each is bytes. Invalid UTF-8 becomes U+FFFD.

    Args:
        decode: returns the bytes of an id after another one, which is None at the start.
        previous: the id before the first one.
        hidden: ids without text.
    """

    def __init__(
        self, decode: Callable[[int | None, int], bytes], previous: int | None = None, hidden: Container[int] = ()
    ) -> None:
        self._decode = decode
        self._previous = previous
        self._hidden = hidden
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        data = b"" if token in self._hidden else self._decode(self._previous, token)
        self._previous = token
        return self._characters.decode(data)

    def finish(self) -> str:
        return self._characters.decode(b"", final=True)


class StreamDecoder(TextDecoder):
    """Turns ids into text, where that of each depends on those before it.

    Args:
        decode: returns the text of ids, without special tokens.
        previous: the ids before the first one, such as a prompt's.
        cleans_up: removes spaces as `clean_up` does, and so returns a word when the next one begins.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        previous: Sequence[int] = (),
        cleans_up: bool = False,
    ) -> None:
        # A token's text depends on the tokens before it, so decode it together with the ids of the last piece.
        self._decode = decode
        self._clean_up = StreamCleanUp() if cleans_up else None
        self._window = list(previous[-CONTEXT:])
        self._emitted = len(decode(self._window)) if self._window else 0
        self._previous_count = len(self._window)

    def push(self, token: int) -> str:
        self._window.append(token)
        text = self._decode(self._window)
        if len(text) <= self._emitted or text.endswith(UNFINISHED):
            return ""
        piece = text[self._emitted :]
        self._window, self._previous_count = (
            self._window[self._previous_count :],
            len(self._window) - self._previous_count,
        )
        self._emitted = len(self._decode(self._window))
        return piece if self._clean_up is None else self._clean_up.push(piece)

    def finish(self) -> str:
        rest = self._decode(self._window)[self._emitted :] if self._window[self._previous_count :] else ""
        self._emitted += len(rest)
        return rest if self._clean_up is None else self._clean_up.push(rest) + self._clean_up.finish()


class MarkedDecoder(TextDecoder):
    """Turns ids into text with that of some special tokens.

    Args:
        decoder: leaves out special tokens.
        marks: the text of those that are not left out, by id.
    """

    def __init__(self, decoder: TextDecoder, marks: Mapping[int, str]) -> None:
        self._decoder, self._marks = decoder, marks

    def push(self, token: int) -> str:
        text, mark = self._decoder.push(token), self._marks.get(token)
        return text if mark is None else text + self._decoder.finish() + mark

    def finish(self) -> str:
        return self._decoder.finish()

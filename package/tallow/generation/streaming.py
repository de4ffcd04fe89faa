"""Decode tokens to text as they come, and end it at stop strings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from tallow.errors import ArgumentError
from tallow.text.stream_decoder import ByteDecoder, pieces_of


class ByteTokenizer(Protocol):
    """A tokenizer whose tokens are bytes, such as `Llama2cTokenizer`."""

    def decode(self, previous: int | None, token: int) -> bytes:
        """Return the bytes of a token; `previous` is the token before it, None at the start."""


def decode_stream(tokenizer: ByteTokenizer, tokens: Iterable[int], *, previous: int | None = None) -> Iterator[str]:
    """Yield the text of tokens as they come, in pieces that never split a character.

    Invalid UTF-8 becomes U+FFFD. An incomplete character waits for its next byte, or for the end. The tokenizers of
    `tallow.text` have a method of this name, which takes any tokens and leaves out special ones.

    Args:
        previous: the token before the first of `tokens`, if any. After BOS a word loses its leading space, so
            `decode_stream(t, ids[1:], previous=ids[0])` returns the text that was encoded.
    """
    return pieces_of(ByteDecoder(tokenizer.decode, previous), tokens)


def until(pieces: Iterable[str], stop: Collection[str]) -> Iterator[str]:
    """Yield pieces of text up to the first of the strings in `stop`, which may span several pieces.

    Text that may begin a stop string is held back until that is decided. Nothing is read from `pieces` after the stop,
    so a generator behind them computes no further token.

    Raises:  ArgumentError for an empty string in stop
    """
    strings = StopStrings(stop)
    return _until(pieces, strings) if strings else iter(pieces)


def _until(pieces: Iterable[str], strings: StopStrings) -> Iterator[str]:
    for piece in pieces:
        if text := strings.push(piece):
            yield text
        if strings.found:
            return
    if text := strings.finish():
        yield text


class StopStrings:
    """Ends a text at the first of some strings; for text that comes in pieces.

    Args:
        stop: the strings.
        keep: the string that ends the text is part of it.

    Raises:  ArgumentError for an empty string

    Attributes:
        found: whether the text has ended.
    """

    def __init__(self, stop: Collection[str], *, keep: bool = False) -> None:
        self._keep = keep
        self._stop = (stop,) if isinstance(stop, str) else tuple(stop)
        if "" in self._stop:
            raise ArgumentError("stop strings: one is empty", hint="remove it")
        self.found = False
        self._held = ""  # may begin a stop string

    def __bool__(self) -> bool:
        return bool(self._stop)

    def push(self, piece: str) -> str:
        """Return the text that can be shown after a piece."""
        text = self._held + piece
        ends = [(place + len(string), place) for string in self._stop if (place := text.find(string)) >= 0]
        if ends:
            end, place = min(ends)  # the stop string that ends first, however the text was divided
            self.found, self._held = True, ""
            return text[: end if self._keep else place]
        safe = len(text) - max((_partial_match(text, string) for string in self._stop), default=0)
        self._held = text[safe:]
        return text[:safe]

    def finish(self) -> str:
        """Return the text that was held back, at the end of the last piece."""
        held, self._held = self._held, ""
        return held


def _partial_match(text: str, string: str) -> int:
    """Return how many characters at the end of `text` are a proper prefix of `string`."""
    return next(n for n in range(min(len(text), len(string) - 1), -1, -1) if text.endswith(string[:n]))

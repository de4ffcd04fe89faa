"""Decode tokens to text as they come, and end it at stop strings."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from tallow.errors import ArgumentError


class ByteTokenizer(Protocol):
    """A tokenizer whose tokens are bytes, such as `Llama2cTokenizer`."""

    def decode(self, previous: int | None, token: int) -> bytes:
        """Return the bytes of a token; `previous` is the token before it, None at the start."""


def decode_stream(tokenizer: ByteTokenizer, tokens: Iterable[int], *, previous: int | None = None) -> Iterator[str]:
    """Yield the text of tokens as they come, in pieces that never split a character.

    Invalid UTF-8 becomes U+FFFD. An incomplete character waits for its next byte, or for the end. For tokens that are
    not bytes, `tallow.text.Tokenizer` has a method of this name.

    Args:
        previous: the token before the first of `tokens`, if any. After BOS a word loses its leading space, so
            `decode_stream(t, ids[1:], previous=ids[0])` returns the text that was encoded.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for token in tokens:
        if text := decoder.decode(tokenizer.decode(previous, token)):
            yield text
        previous = token
    if text := decoder.decode(b"", final=True):
        yield text


def until(pieces: Iterable[str], stop: Collection[str]) -> Iterator[str]:
    """Yield pieces of text up to the first of the strings in `stop`, which may span several pieces.

    Text that may begin a stop string is held back until that is decided. Nothing is read from `pieces` after the stop,
    so a generator behind them computes no further token.

    Raises:  ArgumentError for an empty string in stop
    """
    if isinstance(stop, str):
        stop = (stop,)
    if "" in stop:
        raise ArgumentError("stop strings: one is empty", hint="remove it")
    return _until(pieces, stop) if stop else iter(pieces)


def _until(pieces: Iterable[str], stop: Collection[str]) -> Iterator[str]:
    buffer = ""
    for piece in pieces:
        buffer += piece
        ends = [(place + len(string), place) for string in stop if (place := buffer.find(string)) >= 0]
        if ends:
            _, place = min(ends)  # the stop string that ends first, however the text was divided
            if place:
                yield buffer[:place]
            return
        safe = len(buffer) - max(_partial_match(buffer, string) for string in stop)
        if safe:
            yield buffer[:safe]
        buffer = buffer[safe:]
    if buffer:
        yield buffer


def _partial_match(text: str, string: str) -> int:
    """Return how many characters at the end of `text` are a proper prefix of `string`."""
    return next(n for n in range(min(len(text), len(string) - 1), -1, -1) if text.endswith(string[:n]))

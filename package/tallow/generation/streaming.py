"""Text from tokens as they come, and where it ends."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from tallow.errors import ArgumentError


class ByteTokenizer(Protocol):
    """A tokenizer whose tokens are bytes, as `Llama2cTokenizer`'s."""

    def decode(self, previous: int | None, token: int) -> bytes: ...


def decode_stream(tokenizer: ByteTokenizer, tokens: Iterable[int], *, previous: int | None = None) -> Iterator[str]:
    """Text from tokens as they come, in pieces that never split a character.

    Bytes that are no UTF-8 become U+FFFD. An unfinished character waits for its next byte, or for the end.
    `tallow.text.Tokenizer` has a method of this name, for tokens that are not bytes.

    Args:
        previous: the token before the first of `tokens`, where there is one. After BOS a word loses its leading space,
            so `decode_stream(t, ids[1:], previous=ids[0])` is the text that was encoded.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for token in tokens:
        if text := decoder.decode(tokenizer.decode(previous, token)):
            yield text
        previous = token
    if text := decoder.decode(b"", final=True):
        yield text


def until(pieces: Iterable[str], stop: Collection[str]) -> Iterator[str]:
    """Pass pieces of text on, up to the first of the strings in `stop`, which may be spread over several pieces.

    Text that may be the beginning of a stop string waits until it is clear. Nothing is taken from `pieces` after the
    stop, so a generator of tokens behind them computes no more.

    Raises:  ArgumentError for an empty string in stop
    """
    if isinstance(stop, str):
        stop = (stop,)
    if "" in stop:
        raise ArgumentError("stop strings: one is empty", mend="leave it out")
    return _until(pieces, stop) if stop else iter(pieces)


def _until(pieces: Iterable[str], stop: Collection[str]) -> Iterator[str]:
    held = ""
    for piece in pieces:
        held += piece
        found = [(place + len(string), place) for string in stop if (place := held.find(string)) >= 0]
        if found:
            _, place = min(found)  # the first that is complete, wherever the pieces were cut
            if place:
                yield held[:place]
            return
        clear = len(held) - max(_beginning(held, string) for string in stop)
        if clear:
            yield held[:clear]
        held = held[clear:]
    if held:
        yield held


def _beginning(text: str, string: str) -> int:
    """How many characters at the end of `text` are the first of `string`."""
    return next(n for n in range(min(len(text), len(string) - 1), -1, -1) if text.endswith(string[:n]))

"""Turn ids into text as they come, in pieces that never split a character."""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # decoded from an incomplete character
CONTEXT = 8  # ids of a prompt that determine whether a space precedes the next token


class StreamDecoder:
    """Turns ids into text, one at a time.

    Args:
        decode: returns the text of ids, without special tokens.
        previous: the ids before the first one, such as a prompt's.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], previous: Sequence[int] = ()) -> None:
        # A token's text depends on the tokens before it, so decode it together with the ids of the last piece.
        self._decode = decode
        self._window = list(previous[-CONTEXT:])
        self._emitted = len(decode(self._window)) if self._window else 0
        self._previous_count = len(self._window)

    def push(self, token: int) -> str:
        """Return the text that an id completes; it may be empty."""
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
        return piece

    def finish(self) -> str:
        """Return the text of an incomplete character at the end."""
        return self._decode(self._window)[self._emitted :] if self._window[self._previous_count :] else ""

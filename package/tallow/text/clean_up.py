"""Remove the spaces that a tokenizer of words writes before punctuation and English contractions."""

from __future__ import annotations

import re

# In this order, as transformers' `clean_up_tokenization`.
JOINED = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")
_LONGEST = max(map(len, JOINED))
# No replacement spans the place before this space: they begin with a space, or have one after an apostrophe.
_LAST_PLACE = re.compile(r"(?s:.*)[^'](?= [^'])")


def clean_up(text: str) -> str:
    """Return a text without these spaces."""
    for written in JOINED:
        text = text.replace(written, written.strip())
    return text


class StreamCleanUp:
    """Cleans a text that comes in pieces: the result is that of `clean_up` for the whole text."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, piece: str) -> str:
        """Return the clean text that a piece completes, up to its last word; it may be empty."""
        text = self._held + piece
        if " " in text[-_LONGEST:]:
            match = _LAST_PLACE.match(text)
            end = match.end() if match else 0
        else:  # whatever begins with the last space has ended
            end = len(text)
        self._held = text[end:]
        return clean_up(text[:end])

    def finish(self) -> str:
        """Return the last word. What is pushed then begins another text."""
        held, self._held = self._held, ""
        return clean_up(held)

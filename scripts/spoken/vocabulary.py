"""The vocabulary: all bytes, a token for each word with the space before it, and Whisper's special tokens."""

from __future__ import annotations

import json
from pathlib import Path

from tallow.io.atomic import atomic_write
from tallow.text.byte_letters import LETTERS_OF_BYTES
from tallow.text.whisper import OTHER_SPECIALS, WhisperTokenizer

from .phrases import WORDS

LANGUAGES = 1
BYTES = 256


def ranks() -> dict[bytes, int]:
    """Return the id of each text token."""
    tokens = [bytes([i]) for i in range(BYTES)] + [f" {word}".encode() for word in WORDS]
    return {token: i for i, token in enumerate(tokens)}


def tokenizer() -> WhisperTokenizer:
    return WhisperTokenizer(ranks(), len(ranks()) + OTHER_SPECIALS + LANGUAGES)


def save(path: Path) -> None:
    """Write `vocab.json` in GPT-2's format, with each byte spelled as a letter."""
    spelt = {"".join(LETTERS_OF_BYTES[byte] for byte in token): rank for token, rank in ranks().items()}
    with atomic_write(path) as file:
        file.write((json.dumps(spelt, ensure_ascii=False) + "\n").encode())

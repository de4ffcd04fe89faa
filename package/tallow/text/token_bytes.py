"""The bytes that each token of a `tokenizer.json` adds to a text, for generation that is constrained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tallow.errors import TokenizerError
from tallow.text.byte_letters import BYTES_OF_LETTERS

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
_SPACE = "▁"


def token_bytes(definition: str) -> list[bytes | None]:
    """Return the bytes of each id; None for special tokens and ids without a token.

    At the beginning of a text some decoders drop a space; here each token has it.

    Args:    definition: the text of a `tokenizer.json` that an engine has accepted
    Raises:  TokenizerError for tokens that are no parts of the text: those of WordPiece and of unknown decoders
    """
    entries = json.loads(definition)
    decode = _decoder({step["type"]: step for step in _steps(entries.get("decoder") or {})})
    vocabulary = entries["model"].get("vocab", {})
    if isinstance(vocabulary, list):  # Unigram: pairs of a token and its score
        vocabulary = {token: i for i, (token, _) in enumerate(vocabulary)}
    found: dict[int, bytes | None] = {i: decode(token) for token, i in vocabulary.items()}
    for added in entries.get("added_tokens") or []:
        found[added["id"]] = None if added["special"] else added["content"].encode()
    return [found.get(i) for i in range(max(found, default=-1) + 1)]


def _steps(decoder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if decoder.get("type") == "Sequence":
        for step in decoder["decoders"]:
            yield from _steps(step)
    elif decoder:
        yield decoder


def _decoder(steps: Mapping[str, Mapping[str, Any]]) -> Callable[[str], bytes]:
    """Return the function from a token to its bytes for the steps of a decoder."""
    if "ByteLevel" in steps:
        return _of_letters
    if "ByteFallback" in steps or "Metaspace" in steps:
        space = steps.get("Metaspace", {}).get("replacement", _SPACE)
        return lambda token: (
            bytes.fromhex(m[1]) if (m := _BYTE.fullmatch(token)) else token.replace(space, " ").encode()
        )
    names = ", ".join(steps) or "none"
    raise TokenizerError(
        f"the tokens of this vocabulary are no parts of a text (decoder: {names})",
        hint="constrained generation takes byte-level BPE, and SentencePiece with bytes or Metaspace",
    )


def _of_letters(token: str) -> bytes:
    try:
        return bytes(BYTES_OF_LETTERS[letter] for letter in token)
    except KeyError:  # a token that stands for itself
        return token.encode()

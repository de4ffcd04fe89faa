"""Control tokens in the messages of a conversation: text there, and tokens only where the chat template writes them.

Source:  transformers 5.24, `apply_chat_template(sanitize_control_tokens=True)`
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tallow.errors import ArgumentError
from tallow.text.chat import ChatTemplate
from tallow.text.chat_data import plain
from tallow.transformers.tokenization_files import library

# Stand around a control token that a message has; private characters, which messages lose.
OPEN, CLOSE = "\U000f0000", "\U000f0001"
NOTHING = "(?!)"


def control_tokens(tokenizer: Any, template: ChatTemplate) -> list[str]:
    """Return the special tokens, and of the other added ones `chat_control_tokens`, or those that the template has."""
    own = tokenizer.chat_control_tokens
    texts = None if own is not None else template.literals()
    found = []
    for token in tokenizer.added_tokens_decoder.values():
        text = token.content
        written = text in own if texts is None else not text.isspace() and any(text in each for each in texts)
        if token.special or written:
            found.append(text)
    return found


def marked(value: Any, tokens: Iterable[str]) -> Any:
    """Return messages, tools or other values of a template with marks around the control tokens in their strings."""
    return _marked(value, re.compile(_any_of(tokens)))


def _marked(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(f"{OPEN}\\g<0>{CLOSE}", value.replace(OPEN, "").replace(CLOSE, ""))
    if isinstance(value, Mapping):
        return {key: _marked(each, pattern) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(each, pattern) for each in value]
    try:
        return _marked(plain(value), pattern)  # of a message that is no dict
    except TypeError:  # a number or a function; what else is no plain data is refused later
        return value


def _any_of(tokens: Iterable[str]) -> str:
    """Return the pattern of any of some tokens, the longest first."""
    return "|".join(map(re.escape, sorted(tokens, key=len, reverse=True))) or NOTHING


def encode_marked(tokenizer: Any, text: str) -> list[int]:
    """Return the ids of a conversation whose messages are `marked`.

    Marks that the template has separated from their token are dropped, but still divide the text.

    Raises:  ArgumentError for a control token that the vocabulary itself makes of plain text
    """
    parts = re.split(f"{OPEN}({_any_of(tokenizer.added_tokens_encoder)}){CLOSE}|[{OPEN}{CLOSE}]", text)
    ids: list[int] = _encode(tokenizer._tokenizer, parts[0])
    for i, part in enumerate(parts[1:], 1):
        if not part:
            continue
        is_text = i % 2 == 1
        new = _encode_after(_without_added(tokenizer) if is_text else tokenizer._tokenizer, part, tokenizer)
        if is_text and tokenizer.convert_tokens_to_ids(part) in new:
            raise ArgumentError(
                f"sanitize_control_tokens: the tokenizer makes {part!r} of plain text too",
                hint="remove it from the messages",
            )
        ids += new
    return ids


def _encode_after(engine: Any, text: str, tokenizer: Any) -> list[int]:
    """Return the ids of a text that follows other text: SentencePiece adds a space where a text begins."""
    line = _encode(tokenizer._tokenizer, "\n")
    ids = _encode(engine, f"\n{text}")
    return ids[len(line) :] if ids[: len(line)] == line else _encode(engine, text)


def _encode(engine: Any, text: str) -> list[int]:
    return list(engine.encode(text, add_special_tokens=False).ids)


def _without_added(tokenizer: Any) -> Any:
    """Return the library's object of a tokenizer without the added tokens."""
    if tokenizer._without_added is None:
        entries = json.loads(tokenizer._tokenizer.to_str())
        entries |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
        vars(tokenizer)["_without_added"] = library().Tokenizer.from_str(json.dumps(entries, ensure_ascii=False))
    return tokenizer._without_added

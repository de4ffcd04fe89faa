"""Names of the special tokens of answers in channels, the format "harmony" of gpt-oss; `tallow.generation.harmony`
reads them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

CHANNEL, MESSAGE = "<|channel|>", "<|message|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|start|>", CHANNEL)
MARKS = (*ENDS, MESSAGE, "<|constrain|>")
THINK, ANSWER = "<think>\n", "\n</think>\n\n"  # around reasoning, as most models write it


def marks_of(words: Any, marks: Collection[str] = MARKS) -> dict[int, str]:
    """Return those of some marks that are special tokens of a tokenizer, by id; none for one without names of tokens.

    Args:    words: a TextTokenizer
    """
    id_of = getattr(words, "token_to_id", None)
    ids = {} if id_of is None else {mark: id_of(mark) for mark in marks}
    return {id: mark for mark, id in ids.items() if id is not None and not words.decode([id])}


def has_channels(marks: Collection[str]) -> bool:
    """Return whether answers of a model with some marks have channels."""
    return CHANNEL in marks and MESSAGE in marks

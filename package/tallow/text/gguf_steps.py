"""Helpers of the modules that convert tokenizers to the metadata of a GGUF file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tallow.errors import TallowWarning, TokenizerError, warn

HINT = "the weights can be used without it: convert a folder that has no tokenizer.json"
UNUSED_SCORE = -10000.0  # of tokens that no text is split into
# Entries of a `tokenizer.json`, and the lists in those of type "Sequence".
STEPS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}
BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")


def mappings(value: Any, what: str, name: str) -> list[Mapping[str, Any]]:
    """Return a list of JSON objects; an empty one for null.  Raises: TokenizerError for anything else"""
    values = [] if value is None else value
    if not isinstance(values, list) or not all(isinstance(each, Mapping) for each in values):
        raise TokenizerError(f"{name}: {what} is not a list of objects", hint=HINT)
    return values


def warn_of_spaces(scheme: str, name: str) -> None:
    """Warn if a Metaspace step adds spaces otherwise than readers of GGUF, for which the format has no entry.

    Readers add a space to each part of a text that special tokens divide, whatever it begins with.
    """
    others = {
        "always": "to a text that begins with one",
        "first": "after special tokens, and to a text that begins with one",
    }
    if scheme in others:
        warn(f"{name}: readers of GGUF add a space also {others[scheme]}, so such texts get other ids", TallowWarning)


def steps(entries: Mapping[str, Any], kind: str, name: str) -> list[Mapping[str, Any]]:
    """Return the steps of a normalizer, pre-tokenizer or post-processor, without sequences."""

    def flat(parts: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for step in parts:
            if step.get("type") == "Sequence":
                yield from flat(mappings(step.get(STEPS[kind]), kind, name))
            else:
                yield step

    entry = entries.get(kind)
    return list(flat(mappings(None if entry is None else [entry], kind, name)))

"""tokenizers.processors: what adds special tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.compat.packages.tokenizers.parts import REQUIRED, Part


class PostProcessor(Part):
    """The base class."""


class BertProcessing(PostProcessor, sep=REQUIRED, cls=REQUIRED):
    """As BERT."""


class ByteLevel(PostProcessor, trim_offsets=True, add_prefix_space=True, use_regex=True):
    """Adds nothing."""


class RobertaProcessing(PostProcessor, sep=REQUIRED, cls=REQUIRED, trim_offsets=True, add_prefix_space=True):
    """As RoBERTa."""


class Sequence(PostProcessor, processors=REQUIRED):
    """One after the other."""


class TemplateProcessing(PostProcessor):
    """By templates such as "[CLS]:0 $A:0 [SEP]:0" for a text, and "[CLS] $A [SEP] $B:1 [SEP]:1" for a pair."""

    def __init__(
        self,
        single: str | list[str] | None = None,
        pair: str | list[str] | None = None,
        special_tokens: Iterable[Any] = (),
    ) -> None:
        tokens = [_token(token) for token in special_tokens]
        self.entries = {
            "type": "TemplateProcessing",
            "single": _template("$A:0" if single is None else single),
            "pair": _template("$A:0 $B:1" if pair is None else pair),
            "special_tokens": {token["id"]: token for token in tokens},
        }


def _token(token: Any) -> dict[str, Any]:
    if isinstance(token, dict):
        return token
    content, number = token if isinstance(token[0], str) else token[::-1]
    return {"id": content, "ids": [number], "tokens": [content]}


def _template(template: str | list[str]) -> list[dict[str, Any]]:
    pieces = template.split() if isinstance(template, str) else template
    parts = []
    for piece in pieces:
        name, colon, segment = piece.rpartition(":")
        if not (colon and segment.isdigit()):
            name, segment = piece, "0"
        if name.startswith("$"):
            text = name.removeprefix("$") or "A"
            if text.isdigit():  # "$1" is the first text with segment 1
                text, segment = "A", text
            parts.append({"Sequence": {"id": text.upper(), "type_id": int(segment)}})
        else:
            parts.append({"SpecialToken": {"id": name, "type_id": int(segment)}})
    return parts

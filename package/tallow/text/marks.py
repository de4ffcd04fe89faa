"""The special tokens that a `tokenizer.json` adds to a text or a pair of texts: its post-processor, as a plan.

The plan serves every engine, and texts can be truncated before it is applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tallow.errors import TokenizerError


class Encoded(NamedTuple):
    """The ids of a text, and the segment of each, mostly 0 or 1."""

    ids: list[int]
    segments: list[int]


class Text(NamedTuple):
    """The place of a text: the first of a pair is 0, the second 1."""

    place: int
    segment: int


class Marks(NamedTuple):
    """Special tokens at a place."""

    ids: tuple[int, ...]
    segment: int


Plan = Sequence[Text | Marks]
PLAIN: tuple[Plan, Plan] = ((Text(0, 0),), (Text(0, 0), Text(1, 1)))


@dataclass(frozen=True)
class PostProcessor:
    """The special tokens added to a text and to a pair of texts; by default none."""

    single: Plan = PLAIN[0]
    pair: Plan = PLAIN[1]

    def count(self, texts: int) -> int:
        """Return the number of special tokens added to one text or two."""
        return sum(len(part.ids) for part in self._plan(texts) if isinstance(part, Marks))

    def apply(self, texts: Sequence[list[int]], special: bool = True) -> Encoded:
        """Return the ids of one text or two with what is added to them, or without special tokens."""
        ids: list[int] = []
        segments: list[int] = []
        for part in self._plan(len(texts)):
            if isinstance(part, Text):
                ids += texts[part.place]
                segments += [part.segment] * len(texts[part.place])
            elif special:
                ids += part.ids
                segments += [part.segment] * len(part.ids)
        return Encoded(ids, segments)

    def _plan(self, texts: int) -> Plan:
        return self.single if texts == 1 else self.pair


def post_processor(entry: Mapping[str, Any] | None, name: str) -> PostProcessor:
    """Return the plan of the entry `post_processor`; null adds nothing.

    Raises:  TokenizerError for an entry of another form; `name` is of the file
    """
    try:
        return PostProcessor(*_plans(entry))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TokenizerError(
            f"{name}: post_processor has an unknown form: {error!r:.200}", hint="save it again with transformers"
        ) from error


def _plans(entry: Mapping[str, Any] | None) -> tuple[Plan, Plan]:
    kind = None if entry is None else entry["type"]
    if entry is None or kind == "ByteLevel":
        return PLAIN
    if kind == "TemplateProcessing":
        marks = {word: tuple(map(int, token["ids"])) for word, token in entry["special_tokens"].items()}
        return tuple(_template(entry["single"], marks)), tuple(_template(entry["pair"], marks))
    if kind in ("BertProcessing", "RobertaProcessing"):
        first, last = (Marks((int(entry[name][1]),), 0) for name in ("cls", "sep"))
        if kind == "RobertaProcessing":
            return (first, Text(0, 0), last), (first, Text(0, 0), last, last, Text(1, 0), last)
        return (first, Text(0, 0), last), (first, Text(0, 0), last, Text(1, 1), Marks(last.ids, 1))
    if kind == "Sequence":
        plans = [plan for part in entry["processors"] if (plan := _plans(part)) is not PLAIN]
        if len(plans) > 1:
            raise ValueError("two steps that add tokens")
        return plans[0] if plans else PLAIN
    raise ValueError(f"type {kind!r}")


def _template(parts: Sequence[Mapping[str, Any]], marks: Mapping[str, tuple[int, ...]]) -> list[Text | Marks]:
    plan: list[Text | Marks] = []
    for part in parts:
        if "Sequence" in part:
            plan.append(Text("AB".index(part["Sequence"]["id"]), int(part["Sequence"]["type_id"])))
        else:
            token = part["SpecialToken"]
            plan.append(Marks(marks[token["id"]], int(token["type_id"])))
    return plan


def kept_lengths(lengths: Sequence[int], limit: int) -> list[int]:
    """Return how many tokens of one text or two to keep, at most `limit`: the longer text is cut first.

    Source:  the strategy `longest_first` of the package `tokenizers`
    """
    if sum(lengths) <= limit or len(lengths) == 1:
        return [min(length, limit) for length in lengths]
    short, long = sorted(lengths)
    if short + max(short, limit - short) > limit:
        short, long = limit // 2, limit // 2 + limit % 2
    else:
        long = limit - short
    return [short, long] if lengths[0] <= lengths[1] else [long, short]

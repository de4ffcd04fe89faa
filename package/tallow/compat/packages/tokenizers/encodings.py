"""tokenizers.Encoding: the tokens of a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tallow.compat.packages.tokenizers.parts import refused
from tallow.text.marks import Marks, PostProcessor


class Token(NamedTuple):
    """An id, its segment, the text that it is of (None for special tokens) and its word there, if known."""

    id: int
    segment: int
    text: int | None
    word: int | None


class Encoding:
    """The tokens of a text, or of a pair.

    Attributes:
        is_cut: whether the text was truncated.
    """

    def __init__(self, rows: Sequence[Token], name_of: Callable[[int], str | None], *, is_cut: bool) -> None:
        self._name_of, self.is_cut = name_of, is_cut
        self._has_words = all(row.word is not None for row in rows if row.text is not None)
        self.ids = [row.id for row in rows]
        self.type_ids = [row.segment for row in rows]
        self.sequence_ids = [row.text for row in rows]
        self.special_tokens_mask = [int(row.text is None) for row in rows]
        self.attention_mask = [1] * len(rows)
        self._words = [row.word for row in rows]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, attention_mask])"

    @property
    def tokens(self) -> list[str]:
        """The tokens."""
        return [self._name_of(number) or "" for number in self.ids]

    @property
    def n_sequences(self) -> int:
        """The number of texts."""
        return max(1, len({text for text in self.sequence_ids if text is not None}))

    @property
    def word_ids(self) -> list[int | None]:
        """The word of each token, of texts that were divided into words before.

        Raises: UnsupportedError for other texts.
        """
        if not self._has_words:
            raise refused("tokenizers.Encoding.word_ids")
        return self._words

    words = word_ids

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Raise UnsupportedError."""
        raise refused("tokenizers.Encoding.offsets")

    @property
    def overflowing(self) -> list[Encoding]:
        """Nothing, of texts that fit. Raises: UnsupportedError for others."""
        if self.is_cut:
            raise refused("tokenizers.Encoding.overflowing")
        return []

    def pad(
        self,
        length: int,
        *,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Pad to a length."""
        count = length - len(self)
        if count <= 0:
            return
        for name, filler in (
            ("ids", pad_id), ("type_ids", pad_type_id), ("sequence_ids", None), ("special_tokens_mask", 1),
            ("attention_mask", 0), ("_words", None),
        ):  # fmt: skip
            row, fill = getattr(self, name), [filler] * count
            setattr(self, name, fill + row if direction == "left" else row + fill)


def joined(texts: Sequence[Sequence[tuple[int, int | None]]], plan: PostProcessor, *, special: bool) -> list[Token]:
    """Return the tokens of one text or two, (id, word) each, with what the post-processor adds."""
    rows: list[Token] = []
    for part in plan.single if len(texts) == 1 else plan.pair:
        if not isinstance(part, Marks):
            rows += [Token(number, part.segment, part.place, word) for number, word in texts[part.place]]
        elif special:
            rows += [Token(number, part.segment, None, None) for number in part.ids]
    return rows

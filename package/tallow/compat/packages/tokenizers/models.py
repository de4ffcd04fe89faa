"""tokenizers.models: what divides words into tokens."""

from __future__ import annotations

from typing import Any

from tallow.compat.packages.tokenizers.parts import Part
from tallow.io.regular import read_regular


class Model(Part):
    """The base class."""

    def vocabulary(self) -> dict[str, int]:
        """Return the id of each token."""
        vocab: dict[str, int] = self.entries["vocab"]
        return vocab

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token, or None."""
        return self.vocabulary().get(token)


class BPE(
    Model, vocab=None, merges=None, cache_capacity=None, dropout=None, unk_token=None,
    continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False,
):  # fmt: skip
    """Byte-pair encoding."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entries.pop("cache_capacity")
        self.entries |= {"vocab": self.entries["vocab"] or {}, "merges": self.entries["merges"] or []}


class WordPiece(Model, vocab=None, unk_token="[UNK]", max_input_chars_per_word=100, continuing_subword_prefix="##"):
    """The longest pieces from the left. The vocabulary may be the path of a file with a token in each line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        vocab = self.entries["vocab"] or {}
        if isinstance(vocab, str):
            vocab = {line: i for i, line in enumerate(read_regular(vocab).decode().splitlines())}
        self.entries["vocab"] = vocab


class WordLevel(Model, vocab=None, unk_token="<unk>"):
    """Whole words."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entries["vocab"] = self.entries["vocab"] or {}


class Unigram(Model, vocab=None, unk_id=None, byte_fallback=False):
    """The most probable pieces."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entries["vocab"] = self.entries["vocab"] or [["<unk>", 0.0]]

    def vocabulary(self) -> dict[str, int]:
        """Return the id of each token."""
        return {piece: i for i, (piece, _) in enumerate(self.entries["vocab"])}

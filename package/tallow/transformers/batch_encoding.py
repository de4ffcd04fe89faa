"""The result of a tokenizer's call: ids, masks and so on by name, and the places of tokens in the text.

Source:  transformers 5.23, `BatchEncoding`
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, SupportsIndex

from tallow.errors import ArgumentError, InvalidKeyError, MissingNameError, warn
from tallow.transformers.tensor_types import TensorType, converted


class CharSpan(NamedTuple):
    """A part of a text: its first character, and the one after its last."""

    start: int
    end: int


class TokenSpan(NamedTuple):
    """A part of the tokens: the first, and the one after the last."""

    start: int
    end: int


class BatchEncoding(UserDict[str, Any]):
    """The tokens of one text or of a batch, as a dict: `input_ids`, `attention_mask` and so on, also as attributes.

    The methods for places take the index of a text in the batch first; for one text it may be left out.

    Args:
        data: lists, arrays or tensors by name.
        encoding: what the tokenizer's library returned for each row, or for one.
        tensor_type: "pt" for tensors, "np" for arrays; None leaves the values as they are.
        prepend_batch_axis: put each value into a batch of one before it becomes a tensor.
        n_sequences: the number of texts in a row: 1, or 2 for pairs; None means that of `encoding`.

    Raises:  ArgumentError for rows of unequal lengths that cannot become a tensor
    """

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        encoding: Any = None,
        tensor_type: str | TensorType | None = None,
        prepend_batch_axis: bool = False,
        n_sequences: int | None = None,
    ) -> None:
        super().__init__(data)
        if encoding is not None and not isinstance(encoding, Sequence):
            encoding = [encoding]
        self._encodings = encoding
        self._n_sequences = encoding[0].n_sequences if n_sequences is None and encoding else n_sequences
        self.convert_to_tensors(tensor_type, prepend_batch_axis)

    def __getitem__(self, item: Any) -> Any:
        """Return the value of a name; for an integer, the library's encoding of a row; for a slice, a part of all."""
        if isinstance(item, str):
            return self.data[item]
        if self._encodings is not None:
            return self._encodings[item]
        if isinstance(item, slice):
            return {name: value[item] for name, value in self.data.items()}
        raise InvalidKeyError(f"a key of type {type(item).__name__}", hint="pass a name such as 'input_ids'")

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("data", {})  # absent while it is unpickled
        if name in data:
            return data[name]
        raise MissingNameError(f"{type(self).__name__} has no {name!r}", hint=f"it has {', '.join(map(repr, data))}")

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "encodings": self._encodings, "n_sequences": self._n_sequences}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.data, self._encodings = state["data"], state["encodings"]
        self._n_sequences = state.get("n_sequences")

    @property
    def n_sequences(self) -> int | None:
        """The number of texts in a row: 1, or 2 for pairs; None if it is unknown."""
        return self._n_sequences

    @property
    def is_fast(self) -> bool:
        """True if places of tokens are known."""
        return self._encodings is not None

    @property
    def encodings(self) -> list[Any] | None:
        """The encodings that the tokenizer's library returned, one for each row."""
        return self._encodings

    def convert_to_tensors(self, tensor_type: str | TensorType | None = None, prepend_batch_axis: bool = False) -> Self:
        """Convert the values in place: "pt" for tensors, "np" for arrays.

        Raises:  ArgumentError for rows of unequal lengths
        """
        if tensor_type is None:
            return self
        kind = TensorType(tensor_type)
        for name, value in self.data.items():
            try:
                self.data[name] = converted([value] if prepend_batch_axis else value, kind)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"{name} cannot become a tensor: {error}",
                    hint="pass padding=True and truncation=True, so that all rows have one length",
                ) from error
        return self

    def to(self, device: Any, *, non_blocking: bool = False) -> Self:
        """Move the tensors to a device, in place."""
        if not isinstance(device, str | int) and not hasattr(device, "type"):
            warn(f"BatchEncoding.to({device}): only a device has an effect, ids keep their dtype")
            return self
        moved = {name: value.to(device=device, non_blocking=non_blocking) for name, value in self._tensors().items()}
        self.data = {**self.data, **moved}
        return self

    def _tensors(self) -> dict[str, Any]:
        return {name: value for name, value in self.data.items() if hasattr(value, "to")}

    # ---- places

    def tokens(self, batch_index: int = 0) -> list[str]:
        """Return the tokens of a row."""
        return self._of("tokens")[batch_index].tokens

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """Return for each token of a row whether it is of the first text (0) or the second (1); None for marks."""
        return self._of("sequence_ids")[batch_index].sequence_ids

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """Return for each token of a row the index of its word; None for special tokens."""
        return self._of("word_ids")[batch_index].word_ids

    def token_to_sequence(self, batch_or_token_index: int, token_index: int | None = None) -> int:
        """Return whether a token is of the first text (0) or the second (1)."""
        encoding, index = self._place("token_to_sequence", batch_or_token_index, token_index)
        return encoding.token_to_sequence(self._from_start(encoding, index))

    def token_to_word(self, batch_or_token_index: int, token_index: int | None = None) -> int:
        """Return the index of a token's word."""
        encoding, index = self._place("token_to_word", batch_or_token_index, token_index)
        return encoding.token_to_word(self._from_start(encoding, index))

    def word_to_tokens(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> TokenSpan | None:
        """Return the tokens of a word; None if it has none.

        Args:  sequence_index: of a pair, the text that the word is in
        """
        encoding, index = self._place("word_to_tokens", batch_or_word_index, word_index)
        span = encoding.word_to_tokens(self._from_start(encoding, index), sequence_index)
        return None if span is None else TokenSpan(*span)

    def token_to_chars(self, batch_or_token_index: int, token_index: int | None = None) -> CharSpan | None:
        """Return the characters of a token; None for special tokens."""
        encoding, index = self._place("token_to_chars", batch_or_token_index, token_index)
        span = encoding.token_to_chars(index)
        return None if span is None else CharSpan(*span)

    def char_to_token(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Return the token that a character is in; None for a character in none, such as a space.

        Args:  sequence_index: of a pair, the text that the character is in
        """
        encoding, index = self._place("char_to_token", batch_or_char_index, char_index)
        return encoding.char_to_token(index, sequence_index)

    def word_to_chars(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> CharSpan | None:
        """Return the characters of a word; None for a word without tokens."""
        encoding, index = self._place("word_to_chars", batch_or_word_index, word_index)
        span = encoding.word_to_chars(index, sequence_index)
        return None if span is None else CharSpan(*span)

    def char_to_word(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Return the index of the word that a character is in."""
        encoding, index = self._place("char_to_word", batch_or_char_index, char_index)
        return encoding.char_to_word(index, sequence_index)

    def _of(self, what: str) -> list[Any]:
        if not self._encodings:
            raise ArgumentError(f"{what}: this tokenizer does not say where tokens are in the text")
        return self._encodings

    def _place(self, what: str, first: SupportsIndex, second: int | None) -> tuple[Any, int]:
        """Return the encoding of a row and the index in it."""
        row, index = (0, first) if second is None else (first, second)
        return self._of(what)[row], int(index)

    @staticmethod
    def _from_start(encoding: Any, index: int) -> int:
        return index + len(encoding) if index < 0 else index

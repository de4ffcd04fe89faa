"""A layer that converts texts to the indices of their words."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.layers.encoding import batches
from tallow.keras.layers.hashing import UntypedLayer, as_array
from tallow.keras.layers.vocabulary import StringLookup

LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # only ASCII letters, as in Keras
PUNCTUATION = re.compile(r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~\']""")
SPACE = re.compile(r"[ \t\n\r\f\v]+")
STANDARDS = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
SPLITS = ("whitespace", "character")


class TextVectorization(UntypedLayer):
    """Convert texts to indices of words in a vocabulary, which `adapt` can build.

    Args:
        max_tokens, vocabulary, idf_weights, pad_to_max_tokens: as in StringLookup; index 0 is padding, 1 a word outside
            the vocabulary.
        standardize: preprocessing: "lower_and_strip_punctuation", "lower", "strip_punctuation", None, or a function of
            an array of strings.
        split: split at "whitespace", into each "character", not at all (None), or by a function of an array of strings
            that returns lists.
        ngrams: an integer n to add sequences of 2 to n words as tokens, or a tuple of lengths.
        output_mode: "int", or vectors as in StringLookup.
        output_sequence_length: the length to which indices are cropped or padded; by default the longest text's.
        sparse, ragged: not supported.
        encoding: encoding of texts passed as bytes; only utf-8.

    Shapes:  texts (B) or (B, 1), or one -> (B, words); vectors (B, tokens)
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: str | Callable[..., Any] | None = "lower_and_strip_punctuation",
        split: str | Callable[..., Any] | None = "whitespace",
        ngrams: Any = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: Any = None,
        idf_weights: Any = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        for argument, value, choices in (("standardize", standardize, STANDARDS), ("split", split, SPLITS)):
            if value is not None and not callable(value) and value not in choices:
                raise ArgumentError(f"{self.name}: {argument}={value!r}", hint=f"use {', '.join(map(repr, choices))}")
        if ragged:
            raise ArgumentError(
                f"{self.name}: ragged=True: ragged tensors are not supported", hint="remove ragged=True"
            )
        if output_sequence_length is not None and output_mode != "int":
            raise ArgumentError(f"{self.name}: output_sequence_length needs output_mode='int'")
        self.lookup = StringLookup(
            max_tokens, 1, "", "[UNK]", vocabulary, idf_weights, False, output_mode, pad_to_max_tokens, sparse, encoding
        )
        self.standardize, self.split = standardize, split
        ngrams = range(1, ngrams + 1) if isinstance(ngrams, int) else ngrams
        self.ngrams = None if ngrams is None else tuple(ngrams)
        self.output_sequence_length = output_sequence_length

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Build the vocabulary from an array or an iterable of texts; `batch_size` has no effect, as in Keras."""
        self.lookup.reset_state()
        for batch in batches(data, steps):
            self.update_state(batch)
        self.lookup.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the words of texts."""
        self.lookup.count_documents(self.words(np.atleast_1d(as_array(data))))

    def finalize_state(self) -> None:
        """Build the vocabulary from the counts."""
        self.lookup.finalize_state()

    def reset_state(self) -> None:
        """Clear the counts."""
        self.lookup.reset_state()

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """Return the words in the order of their indices."""
        return self.lookup.get_vocabulary(include_special_tokens)

    def vocabulary_size(self) -> int:
        """Return the number of words, including the special tokens."""
        return self.lookup.vocabulary_size()

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the vocabulary, and the weights for output_mode="tf_idf"."""
        self.lookup.set_vocabulary(vocabulary, idf_weights)

    def words(self, texts: np.ndarray[Any, Any]) -> list[list[str]]:
        """Return the tokens of each text."""
        if self.split is not None and texts.ndim > 1:
            if texts.ndim > 2 or texts.shape[-1] != 1:
                raise ShapeError(f"{self.name}: expected texts of shape (B) or (B, 1), got {texts.shape}")
            texts = texts[:, 0]
        if callable(self.standardize):
            texts = as_array(self.standardize(texts))
        elif self.standardize is not None:
            clean = [self._standardize(text) for text in texts.reshape(-1).tolist()]
            texts = np.array(clean, dtype=object).reshape(texts.shape)
        if callable(self.split):
            tokens = [list(map(str, part)) for part in self.split(texts)]
        elif self.split is None:
            tokens = [[row] if isinstance(row, str) else list(row) for row in texts.tolist()]
        elif self.split == "whitespace":
            tokens = [[word for word in SPACE.split(text) if word] for text in texts.tolist()]
        else:
            tokens = [list(text) for text in texts.tolist()]
        if self.ngrams is None:
            return tokens
        return [[" ".join(row[i : i + n]) for n in self.ngrams for i in range(len(row) - n + 1)] for row in tokens]

    def _standardize(self, text: str) -> str:
        text = text.translate(LOWER) if self.standardize != "strip_punctuation" else text
        return PUNCTUATION.sub("", text) if self.standardize != "lower" else text

    def call(self, inputs: Any) -> Any:
        texts = as_array(inputs)
        rows = [[self.lookup.index_of(word) for word in row] for row in self.words(np.atleast_1d(texts))]
        is_int = self.lookup.output_mode == "int"
        length = self.output_sequence_length
        if length is None:
            length = max((len(row) for row in rows), default=0)
        padded = np.full((len(rows), length), 0 if is_int else -1, np.int64)
        for row, indices_of_text in zip(padded, rows, strict=True):
            row[: len(indices_of_text)] = indices_of_text[:length]
        indices = tl.as_tensor(padded if texts.ndim else padded[0])
        return indices if is_int else self.lookup.vectors(indices)

    def get_config(self) -> dict[str, Any]:
        lookup_config = self.lookup.get_config()
        return super().get_config() | {
            "vocabulary": lookup_config["vocabulary"],
            "idf_weights": lookup_config["idf_weights"],
        }

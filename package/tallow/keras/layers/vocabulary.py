"""Tokens as integers, and back, by a vocabulary: StringLookup, IntegerLookup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.config import floatx
from tallow.keras.layers.encoding import batches, checked_mode, encoded, encoded_shape, refuse_sparse
from tallow.keras.layers.fingerprints import fingerprint, keyed
from tallow.keras.layers.hashing import Raw, as_array, each
from tallow.keras.layers.weighted import as_dtype
from tallow.keras.shapes import Shape
from tallow.keras.symbolic import KerasTensor
from tallow.tensor import Tensor


class VocabularyLookup(Raw):
    """Base of both.

    Args:
        max_tokens: the size of the vocabulary at most, its special tokens included.
        num_oov_indices: how many indices there are for tokens out of the vocabulary, which share them by a hash.
        mask_token: the token of padding, which has index 0 with output_mode="int", and counts nowhere otherwise.
        oov_token: what `invert` gives for an index out of the vocabulary.
        vocabulary: the tokens in the order of their indices; otherwise `adapt` finds them.
        idf_weights: the weight of each token for output_mode="tf_idf", unless `adapt` finds them.
        invert: turn indices into tokens.
        output_mode: "int", "one_hot", "multi_hot", "count" as in CategoryEncoding, or "tf_idf": counts times weights.
        pad_to_max_tokens: make vectors of max_tokens, however many tokens there are.
        sparse: refused.
        salt: one integer or two: a key of that hash.
    """

    def __init__(
        self,
        max_tokens: int | None,
        num_oov_indices: int,
        mask_token: Any,
        oov_token: Any,
        vocabulary: Any,
        idf_weights: Any,
        invert: bool,
        output_mode: str,
        pad_to_max_tokens: bool,
        sparse: bool,
        salt: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        refuse_sparse(self.name, sparse)
        self.output_mode = checked_mode(self.name, output_mode, "tf_idf")
        if max_tokens is not None and max_tokens <= 1:
            raise ArgumentError(f"{self.name}: max_tokens must be more than 1, got {max_tokens}")
        if pad_to_max_tokens and max_tokens is None:
            raise ArgumentError(f"{self.name}: pad_to_max_tokens without max_tokens")
        if num_oov_indices < 0:
            raise ArgumentError(f"{self.name}: num_oov_indices must not be negative, got {num_oov_indices}")
        if invert and self.output_mode != "int":
            raise ArgumentError(f"{self.name}: invert goes with output_mode='int'")
        if idf_weights is not None and (self.output_mode != "tf_idf" or vocabulary is None):
            raise ArgumentError(f"{self.name}: idf_weights go with a vocabulary and output_mode='tf_idf'")
        self.max_tokens, self.num_oov_indices, self.pad_to_max_tokens = max_tokens, num_oov_indices, pad_to_max_tokens
        self.mask_token, self.oov_token, self.invert = mask_token, oov_token, invert
        self.salt = (salt, salt) if isinstance(salt, int) else None if salt is None else tuple(salt)
        self._tokens: tuple[Any, ...] = ()
        self._weights: np.ndarray[Any, Any] | None = None
        self.reset_state()
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    # -------------------------------------------------------------------------------------------------- the vocabulary

    @property
    def _special(self) -> list[Any]:
        has_mask = self.mask_token is not None and self.output_mode == "int"
        return [self.mask_token] * has_mask + [self.oov_token] * self.num_oov_indices

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The tokens in the order of their indices."""
        return [*(self._special if include_special_tokens else ()), *self._tokens]

    def vocabulary_size(self) -> int:
        """How many tokens there are, the special ones included."""
        return len(self._special) + len(self._tokens)

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Take these tokens, with or without the special ones in front."""
        if isinstance(vocabulary, str):
            raise ArgumentError(
                f"{self.name}: vocabulary={vocabulary!r}: files are not read", mend="pass open(path).read().split()"
            )
        tokens = as_array(vocabulary).tolist()
        special = self._special
        has_special = bool(special) and tokens[: len(special)] == special
        own = tokens[len(special) :] if has_special else tokens
        if not tokens:
            raise ArgumentError(f"{self.name}: the vocabulary is empty")
        repeated = [token for token, count in Counter(own).items() if count > 1]
        if repeated:
            raise ArgumentError(f"{self.name}: the vocabulary has tokens twice: {repeated[:5]}")
        if self.mask_token in own or (self.invert and self.oov_token in own):
            raise ArgumentError(f"{self.name}: the special tokens {special} are only taken in front, in this order")
        if self.max_tokens is not None and len(special) + len(own) > self.max_tokens:
            raise ArgumentError(f"{self.name}: {len(special) + len(own)} tokens; max_tokens is {self.max_tokens}")
        if (self.output_mode == "tf_idf") != (idf_weights is not None):
            raise ArgumentError(f"{self.name}: idf_weights and output_mode='tf_idf' go together")
        self._take(own)
        if idf_weights is not None:
            weights = np.asarray(idf_weights, np.float32)
            if weights.shape != (len(tokens),):
                raise ArgumentError(f"{self.name}: {weights.shape} idf_weights for {len(tokens)} tokens")
            front = [] if has_special else [weights.mean()] * len(special)
            self._weights = np.concatenate([np.array(front, np.float32), weights])

    def _take(self, tokens: Sequence[Any]) -> None:
        self._tokens = tuple(tokens)
        start = len(self._special)
        self.__dict__["_index"] = {token: start + place for place, token in enumerate(self._tokens)}

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Find the tokens of an array, or of an iterable of them: the most frequent first."""
        self.reset_state()
        for batch in batches(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the tokens of data.  Shapes:  data (N), or (documents, N)"""
        array = as_array(data)
        self.count_documents(array.reshape(-1, 1).tolist() if array.ndim < 2 else array.tolist())

    def count_documents(self, documents: Sequence[Sequence[Any]]) -> None:
        """Count tokens, document by document."""
        for document in documents:
            counted = Counter(document)
            self._counts.update(counted)
            self._document_counts.update(counted.keys())
            self._documents += 1

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted."""
        if not self._counts:
            return
        for token in (self.mask_token, self.oov_token):
            self._counts.pop(token, None)
        found = sorted(self._counts, key=lambda token: (self._counts[token], _in_order(token)), reverse=True)
        if self.max_tokens is not None:
            found = found[: self.max_tokens - len(self._special)]
        self._take(found)
        if self.output_mode == "tf_idf":
            documents = np.array([self._document_counts[token] for token in found])
            weights = np.log(1 + self._documents / (1 + documents)).astype(np.float32)
            self._weights = np.concatenate([np.full(len(self._special), weights.mean(), np.float32), weights])
        self.reset_state()

    def reset_state(self) -> None:
        """Forget what was counted."""
        self.__dict__.update(_counts=Counter(), _document_counts=Counter(), _documents=0)

    # ---------------------------------------------------------------------------------------------------------- calls

    def call(self, inputs: Any) -> Any:
        array = as_array(inputs)
        if self.invert:
            return self._tokens_of(array)
        indices = tl.as_tensor(each(array, self.index_of))
        return indices if self.output_mode == "int" else self.vectors(indices)

    def index_of(self, token: Any) -> int:
        """The index of a token; with vectors, -1 for the mask, which counts nowhere."""
        if self.mask_token is not None and token == self.mask_token:
            return 0 if self.output_mode == "int" else -1
        found = self.__dict__.get("_index", {}).get(token)
        if found is not None:
            return int(found)
        if not self.num_oov_indices:
            raise ArgumentError(
                f"{self.name}: {token!r:.100} is not in the vocabulary", mend="set num_oov_indices=1 for such tokens"
            )
        start = len(self._special) - self.num_oov_indices
        return start + (self._bin(token) % self.num_oov_indices if self.num_oov_indices > 1 else 0)

    def _bin(self, token: Any) -> int:
        text = str(token).encode()
        return fingerprint(text) if self.salt is None else keyed(text, self.salt)

    def vectors(self, indices: Tensor) -> Tensor:
        """The indices as vectors, by the output_mode.  Shapes:  as `encoded`"""
        depth = self._depth()
        if not self._tokens:
            raise ArgumentError(f"{self.name}: there is no vocabulary", mend="pass one, or adapt the layer to data")
        if self.output_mode != "tf_idf":
            return encoded(indices, self.output_mode, depth, as_dtype(floatx()))
        weights = np.zeros(depth, np.float32)
        known = self._weights if self._weights is not None else np.ones(0, np.float32)
        weights[: len(known)] = known
        return encoded(indices, "count", depth, as_dtype(floatx())) * tl.as_tensor(weights)

    def _depth(self) -> int:
        return self.max_tokens if self.pad_to_max_tokens and self.max_tokens else self.vocabulary_size()

    def _tokens_of(self, indices: np.ndarray[Any, Any]) -> Any:
        vocabulary = self.get_vocabulary()
        known = [vocabulary[i] if 0 <= i < len(vocabulary) else self.oov_token for i in indices.reshape(-1).tolist()]
        tokens = np.array(known).reshape(indices.shape)
        return tokens if tokens.dtype.kind in "UO" else tl.as_tensor(tokens)

    def compute_output_spec(self, inputs: Any) -> Any:
        return KerasTensor(self.compute_output_shape(inputs.shape), "int64" if self.output_mode == "int" else floatx())

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        mode = "count" if self.output_mode == "tf_idf" else self.output_mode
        return encoded_shape(input_shape, mode, self._depth())

    def get_config(self) -> dict[str, Any]:
        vocabulary = list(self._tokens) or None
        weights = None
        if self._weights is not None and vocabulary is not None:
            weights = self._weights.tolist()
            vocabulary = self.get_vocabulary()
        return super().get_config() | {"vocabulary": vocabulary, "idf_weights": weights}


def _in_order(token: Any) -> Any:
    return token.encode() if isinstance(token, str) else token


class StringLookup(VocabularyLookup):
    """Strings as integers.

    Args:    as VocabularyLookup; encoding: of strings that come as bytes, utf-8
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: str | None = None,
        oov_token: str = "[UNK]",
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        salt: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
            pad_to_max_tokens, sparse, salt, name=name, **kwargs,
        )  # fmt: skip
        if encoding != "utf-8":
            raise ArgumentError(f"{self.name}: encoding={encoding!r}", mend="decode the bytes before")


class IntegerLookup(VocabularyLookup):
    """Integers of any range as indices.

    Args:    as VocabularyLookup; oov_method: "floormod" of the integer, or "farmhash", a hash, when there are several
        num_oov_indices; vocabulary_dtype: "int64"
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int = -1,
        vocabulary: Any = None,
        vocabulary_dtype: str = "int64",
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if vocabulary_dtype != "int64" or oov_method not in ("floormod", "farmhash"):
            raise ArgumentError(f"IntegerLookup: vocabulary_dtype={vocabulary_dtype!r}, oov_method={oov_method!r}")
        if salt is not None and oov_method != "farmhash":
            raise ArgumentError("IntegerLookup: salt goes with oov_method='farmhash'")
        super().__init__(
            max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
            pad_to_max_tokens, sparse, salt, name=name, **kwargs,
        )  # fmt: skip
        self.oov_method = oov_method

    def _bin(self, token: Any) -> int:
        return int(token) if self.oov_method == "floormod" else super()._bin(token)

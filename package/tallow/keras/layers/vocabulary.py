"""Layers that map tokens to indices and back with a vocabulary: StringLookup, IntegerLookup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.config import floatx
from tallow.keras.dtype_names import as_dtype
from tallow.keras.layers.encoding import batches, check_mode, encode, encoded_shape, refuse_sparse
from tallow.keras.layers.fingerprints import fingerprint, siphash
from tallow.keras.layers.hashing import UntypedLayer, as_array, each
from tallow.keras.shapes import Shape
from tallow.keras.symbolic import KerasTensor


class VocabularyLookup(UntypedLayer):
    """Base class of the lookup layers.

    Args:
        max_tokens: the maximum size of the vocabulary, including the special tokens.
        num_oov_indices: the number of indices for tokens outside the vocabulary, chosen by a hash.
        mask_token: the padding token, which has index 0 with output_mode="int" and is ignored otherwise.
        oov_token: the result of `invert` for an index outside the vocabulary.
        vocabulary: the tokens in the order of their indices; without it call `adapt`.
        idf_weights: the weight of each token for output_mode="tf_idf"; `adapt` computes them otherwise.
        invert: map indices to tokens.
        output_mode: "int", "one_hot", "multi_hot", "count" as in CategoryEncoding, or "tf_idf": counts times weights.
        pad_to_max_tokens: return vectors of length max_tokens even if there are fewer tokens.
        sparse: not supported.
        salt: the key of the hash, one integer or two.
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
        self.output_mode = check_mode(self.name, output_mode, "tf_idf")
        if max_tokens is not None and max_tokens <= 1:
            raise ArgumentError(f"{self.name}: max_tokens must be more than 1, got {max_tokens}")
        if pad_to_max_tokens and max_tokens is None:
            raise ArgumentError(f"{self.name}: pad_to_max_tokens needs max_tokens")
        if num_oov_indices < 0:
            raise ArgumentError(f"{self.name}: num_oov_indices must not be negative, got {num_oov_indices}")
        if invert and self.output_mode != "int":
            raise ArgumentError(f"{self.name}: invert needs output_mode='int'")
        if idf_weights is not None and (self.output_mode != "tf_idf" or vocabulary is None):
            raise ArgumentError(f"{self.name}: idf_weights need a vocabulary and output_mode='tf_idf'")
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
        """Return the tokens in the order of their indices."""
        return [*(self._special if include_special_tokens else ()), *self._tokens]

    def vocabulary_size(self) -> int:
        """Return the number of tokens, including the special ones."""
        return len(self._special) + len(self._tokens)

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the vocabulary; `vocabulary` may start with the special tokens."""
        if isinstance(vocabulary, str):
            raise ArgumentError(
                f"{self.name}: vocabulary={vocabulary!r}: reading a file is not supported",
                hint="pass open(path).read().split()",
            )
        tokens = as_array(vocabulary).tolist()
        special = self._special
        has_special = bool(special) and tokens[: len(special)] == special
        regular = tokens[len(special) :] if has_special else tokens
        if not tokens:
            raise ArgumentError(f"{self.name}: the vocabulary is empty")
        repeated = [token for token, count in Counter(regular).items() if count > 1]
        if repeated:
            raise ArgumentError(f"{self.name}: the vocabulary has duplicate tokens: {repeated[:5]}")
        if self.mask_token in regular or (self.invert and self.oov_token in regular):
            raise ArgumentError(f"{self.name}: the special tokens {special} must be at the start, in this order")
        if self.max_tokens is not None and len(special) + len(regular) > self.max_tokens:
            raise ArgumentError(f"{self.name}: {len(special) + len(regular)} tokens; max_tokens is {self.max_tokens}")
        if (self.output_mode == "tf_idf") != (idf_weights is not None):
            raise ArgumentError(f"{self.name}: pass idf_weights if and only if output_mode='tf_idf'")
        self._set_tokens(regular)
        if idf_weights is not None:
            weights = np.asarray(idf_weights, np.float32)
            if weights.shape != (len(tokens),):
                raise ArgumentError(f"{self.name}: {weights.shape} idf_weights for {len(tokens)} tokens")
            special_weights = [] if has_special else [weights.mean()] * len(special)
            self._weights = np.concatenate([np.array(special_weights, np.float32), weights])

    def _set_tokens(self, tokens: Sequence[Any]) -> None:
        self._tokens = tuple(tokens)
        start = len(self._special)
        self.__dict__["_index"] = {token: start + i for i, token in enumerate(self._tokens)}

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Build the vocabulary from an array or an iterable of arrays, most frequent tokens first."""
        self.reset_state()
        for batch in batches(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the tokens of data.

        Shapes:  data (N), or (documents, N)
        """
        array = as_array(data)
        self.count_documents(array.reshape(-1, 1).tolist() if array.ndim < 2 else array.tolist())

    def count_documents(self, documents: Sequence[Sequence[Any]]) -> None:
        """Count the tokens of each document."""
        for document in documents:
            counts = Counter(document)
            self._counts.update(counts)
            self._document_counts.update(counts.keys())
            self._documents += 1

    def finalize_state(self) -> None:
        """Build the vocabulary from the counts."""
        if not self._counts:
            return
        for token in (self.mask_token, self.oov_token):
            self._counts.pop(token, None)
        tokens = sorted(self._counts, key=lambda token: (self._counts[token], _sort_key(token)), reverse=True)
        if self.max_tokens is not None:
            tokens = tokens[: self.max_tokens - len(self._special)]
        self._set_tokens(tokens)
        if self.output_mode == "tf_idf":
            documents = np.array([self._document_counts[token] for token in tokens])
            weights = np.log(1 + self._documents / (1 + documents)).astype(np.float32)
            self._weights = np.concatenate([np.full(len(self._special), weights.mean(), np.float32), weights])
        self.reset_state()

    def reset_state(self) -> None:
        """Clear the counts."""
        self.__dict__.update(_counts=Counter(), _document_counts=Counter(), _documents=0)

    # ---------------------------------------------------------------------------------------------------------- calls

    def call(self, inputs: Any) -> Any:
        array = as_array(inputs)
        if self.invert:
            return self._to_tokens(array)
        indices = tl.as_tensor(each(array, self.index_of))
        return indices if self.output_mode == "int" else self.vectors(indices)

    def index_of(self, token: Any) -> int:
        """Return the index of a token; for vector output modes, -1 for the mask token, which is ignored."""
        if self.mask_token is not None and token == self.mask_token:
            return 0 if self.output_mode == "int" else -1
        index = self.__dict__.get("_index", {}).get(token)
        if index is not None:
            return int(index)
        if not self.num_oov_indices:
            raise ArgumentError(
                f"{self.name}: {token!r:.100} is not in the vocabulary", hint="set num_oov_indices=1 for such tokens"
            )
        start = len(self._special) - self.num_oov_indices
        return start + (self._bin(token) % self.num_oov_indices if self.num_oov_indices > 1 else 0)

    def _bin(self, token: Any) -> int:
        text = str(token).encode()
        return fingerprint(text) if self.salt is None else siphash(text, self.salt)

    def vectors(self, indices: Tensor) -> Tensor:
        """Encode indices as vectors, as output_mode says.

        Shapes:  as in `encode`
        """
        depth = self._depth()
        if not self._tokens:
            raise ArgumentError(f"{self.name}: the vocabulary is not set", hint="pass vocabulary, or call adapt(data)")
        if self.output_mode != "tf_idf":
            return encode(indices, self.output_mode, depth, as_dtype(floatx()))
        weights = np.zeros(depth, np.float32)
        token_weights = self._weights if self._weights is not None else np.ones(0, np.float32)
        weights[: len(token_weights)] = token_weights
        return encode(indices, "count", depth, as_dtype(floatx())) * tl.as_tensor(weights)

    def _depth(self) -> int:
        return self.max_tokens if self.pad_to_max_tokens and self.max_tokens else self.vocabulary_size()

    def _to_tokens(self, indices: np.ndarray[Any, Any]) -> Any:
        vocabulary = self.get_vocabulary()
        found_tokens = [
            vocabulary[i] if 0 <= i < len(vocabulary) else self.oov_token for i in indices.reshape(-1).tolist()
        ]
        tokens = np.array(found_tokens).reshape(indices.shape)
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


def _sort_key(token: Any) -> Any:
    return token.encode() if isinstance(token, str) else token


class StringLookup(VocabularyLookup):
    """Map strings to indices.

    Args:    as in VocabularyLookup; encoding: encoding of strings passed as bytes; only utf-8
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
            raise ArgumentError(f"{self.name}: encoding={encoding!r}", hint="decode the bytes first")


class IntegerLookup(VocabularyLookup):
    """Map integers of any range to indices.

    Args:    as in VocabularyLookup; oov_method: how num_oov_indices > 1 indices are chosen: "floormod" of the integer,
        or "farmhash"; vocabulary_dtype: "int64"
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
            raise ArgumentError("IntegerLookup: salt needs oov_method='farmhash'")
        super().__init__(
            max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
            pad_to_max_tokens, sparse, salt, name=name, **kwargs,
        )  # fmt: skip
        self.oov_method = oov_method

    def _bin(self, token: Any) -> int:
        return int(token) if self.oov_method == "floormod" else super()._bin(token)

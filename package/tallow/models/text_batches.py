"""The base of models that compute an array for each text: their texts form batches of similar length.

Letters: N texts, B texts of a batch, T positions, L numbers for a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, NumericError
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.text.marks import Encoded
from tallow.text.tokenizer import Batch, Tokenizer

Vectors = npt.NDArray[np.float32]
Text = str | tuple[str, str]
Progress = Callable[[int, int], None]


class TextBatches:
    """A model with its tokenizer.

    Args:
        max_length: the most tokens of a text; longer texts are truncated. None means the tokenizer's limit.
        options: of the model's `forward` for a batch with padding.
        lowercase: convert texts to lower case first.

    Attributes:
        batch_tokens: how many tokens, padding included, a server puts into one batch.
    """

    batch_tokens: ClassVar[int] = 4096

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Module,
        max_length: int | None,
        options: dict[str, Any] | None = None,
        *,
        lowercase: bool = False,
    ) -> None:
        self.tokenizer = tokenizer
        self.model = model
        self.max_length = max_length
        self.lowercase = lowercase
        self._options = options or {}

    @property
    def vocab_size(self) -> int:
        """The number of token ids that the model has vectors for."""
        tables = (each.num_embeddings for each in self.model.modules() if hasattr(each, "num_embeddings"))
        return int(next(tables))  # that of the tokens is the first

    def prepare(self, texts: Sequence[Text]) -> Sequence[Text]:
        """Return the texts as the tokenizer gets them."""
        return [_lowered(text) for text in texts] if self.lowercase else texts

    def tokenize(
        self, texts: Sequence[Text], *, truncate: bool = True, special: bool = True, side: str | None = None
    ) -> list[Encoded]:
        """Return the tokens of texts, or of pairs of texts.

        Args:
            truncate: to `max_length`; of a pair, the longer text is truncated first.
            special: with special tokens.
            side: where texts are cut, "right" or "left"; None means as the tokenizer says.

        Raises:  TokenizerError for a text that cannot be encoded
        """
        limit = self.max_length if truncate else ENDLESS
        return self.tokenizer.encode_each(
            self.prepare(texts), max_length=limit, add_special_tokens=special, truncation_side=side
        )

    def placed(self, array: npt.NDArray[np.int64]) -> Tensor:
        """Return an array of a batch on the device of the model."""
        return wrap(devices.move(array, next(self.model.parameters()).device))

    def run(self, batch: Batch, *, segments: bool = False) -> tuple[Any, Tensor]:
        """Return the model's output for a batch, and the mask (B, T).

        Args:  segments: the model tells the two texts of a pair apart
        """
        tokens_BT, mask_BT = self.placed(batch.input_ids), self.placed(batch.attention_mask)
        options: dict[str, Any] = {}
        if segments:
            options["token_type_ids"] = self.placed(batch.token_type_ids)
        with no_grad():
            if batch.attention_mask.all():  # no padding: no mask
                return self.model(tokens_BT, **options), mask_BT
            return self.model(tokens_BT, mask_BT, **options, **self._options), mask_BT

    def compute_each(
        self,
        rows: Sequence[Encoded],
        compute: Callable[[Batch], Vectors],
        *,
        most: int | None = None,
        tokens: int | None = None,
        width: int = 0,
        progress: Progress | None = None,
    ) -> Vectors:
        """Return what `compute` returns for texts, in their order.

        Args:
            rows: the tokens of the texts.
            most, tokens: as for `each_batch`.
            width: of the array for no texts.
            progress: called after each batch with the number of texts done and the number of all texts.

        Shapes:  (N, L) for N texts, if `compute` returns (B, L)
        Raises:  as `each_batch`
        """
        arrays = np.empty((0, width), np.float32)
        done = 0
        for members, computed in self.each_batch(rows, compute, most=most, tokens=tokens):
            if done == 0:
                arrays = np.empty((len(rows), *computed.shape[1:]), np.float32)
            arrays[members] = computed
            done += len(members)
            if progress is not None:
                progress(done, len(rows))
        return arrays

    def each_batch(
        self,
        rows: Sequence[Encoded],
        compute: Callable[[Batch], Vectors],
        *,
        most: int | None = None,
        tokens: int | None = None,
    ) -> Iterator[tuple[list[int], Vectors]]:
        """Yield the indices of a batch's rows, and what `compute` returns for them, until all rows are done.

        Args:    most, tokens: the most rows of a batch, and the most tokens in it, padding included
        Raises:  ArgumentError for a batch of no rows; NumericError when a result holds NaN or infinities
        """
        if most is not None and most < 1:
            raise ArgumentError(f"batch_size={most}", hint="pass 1 or more")
        for members in buckets(rows, most, tokens):
            # At the end, whatever side the tokenizer pads: so texts have the positions that they have alone.
            computed = compute(self.tokenizer.pad([rows[i] for i in members], side="right"))
            if not np.isfinite(computed).all():
                raise NumericError(
                    "a vector holds NaN or infinities",
                    hint="check the weights for NaN: tallow inspect --check FILE; if they are float16, try float32, "
                    "which does not overflow",
                )
            yield members, computed


ENDLESS = 1 << 40


def _lowered(text: Text) -> Text:
    return text.lower() if isinstance(text, str) else (text[0].lower(), text[1].lower())


def buckets(rows: Sequence[Encoded], most: int | None, tokens: int | None) -> Iterator[list[int]]:
    """Yield the indices of rows in batches, longest first: little padding, and the first batch needs most memory.

    Args:  most, tokens: as for `each_batch`; a row that is longer than `tokens` is a batch of its own
    """
    batch: list[int] = []
    for i in sorted(range(len(rows)), key=lambda i: -len(rows[i].ids)):
        size = len(batch) + 1
        is_full = (most is not None and size > most) or (
            tokens is not None and size * len(rows[batch[0] if batch else i].ids) > tokens
        )
        if batch and is_full:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def length_limit(requested: Any, tokenizer: Tokenizer, positions: int | None) -> int | None:
    """Return the limit that a folder sets, or else its tokenizer's, but at most the positions of the model; None if
    there is none.
    """
    limit = requested if type(requested) is int and requested > 2 else tokenizer.model_max_length
    return min((limit for limit in (limit, positions) if limit is not None), default=None)

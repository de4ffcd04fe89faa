"""Arrays of the texts of several requests, computed together: embeddings, labels, sparse vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sparse_encoder import SparseEncoder
from tallow.models.encoders.text_classifier import TextClassifier
from tallow.models.text_batches import TextBatches, Vectors
from tallow.serving.worker import GroupWorker
from tallow.text.marks import Encoded
from tallow.text.tokenizer import Batch

GROUP = 64  # requests that are computed together

E = TypeVar("E", bound=TextBatches)
Arrays: TypeAlias = Vectors | list[Vectors]  # one for each text


@dataclass
class Rows:
    """The tokens of a request's texts.

    Args:  each_position: compute a vector for each token, not one for each text
    """

    rows: Sequence[Encoded]
    each_position: bool = False

    @property
    def tokens(self) -> int:
        """The number of tokens in all texts."""
        return sum(len(row.ids) for row in self.rows)


class EncoderWorker(GroupWorker[Rows, Arrays], Generic[E]):
    """Computes an array for each text with one model. Texts of all waiting requests form batches of similar length.

    Args:
        compute: returns the arrays of a batch; a method of `encoder`.
        queue: how many requests may wait.
    """

    def __init__(self, name: str, encoder: E, compute: Callable[[Batch], Vectors], *, queue: int = 128) -> None:
        super().__init__(name, queue=queue, group=GROUP)
        self.encoder = encoder
        self._compute = compute

    def answer(self, requests: Sequence[Rows]) -> Sequence[Arrays]:
        results: list[Arrays] = [[]] * len(requests)
        for each_position, arrays_of in ((False, self._vectors), (True, self._positions)):
            chosen = [i for i, request in enumerate(requests) if request.each_position == each_position]
            arrays: Arrays = arrays_of([row for i in chosen for row in requests[i].rows])
            for i in chosen:
                results[i], arrays = arrays[: len(requests[i].rows)], arrays[len(requests[i].rows) :]
        return results

    def _vectors(self, rows: Sequence[Encoded]) -> Vectors:
        """Return an array for each text, (N, L)."""
        return self.encoder.compute_each(rows, self._compute, tokens=self.encoder.batch_tokens)

    def _positions(self, rows: Sequence[Encoded]) -> list[Vectors]:
        """Return for each text the vectors of its tokens."""
        arrays: dict[int, Vectors] = {}
        if isinstance(self.encoder, SentenceEncoder):
            for members, computed in self.encoder.each_batch(
                rows, self.encoder.positions, tokens=self.encoder.batch_tokens
            ):
                arrays |= {i: array[: len(rows[i].ids)] for i, array in zip(members, computed, strict=True)}
        return [arrays[i] for i in range(len(rows))]


Embedder: TypeAlias = EncoderWorker[SentenceEncoder]
Labeller: TypeAlias = EncoderWorker[TextClassifier]
Weigher: TypeAlias = EncoderWorker[SparseEncoder]


def embedder(name: str, encoder: SentenceEncoder, queue: int = 128) -> Embedder:
    """Return a worker that computes embeddings."""
    return EncoderWorker(name, encoder, encoder.embed, queue=queue)


def labeller(name: str, classifier: TextClassifier, queue: int = 128) -> Labeller:
    """Return a worker that computes the logits of labels."""
    return EncoderWorker(name, classifier, classifier.classify, queue=queue)


def weigher(name: str, encoder: SparseEncoder, queue: int = 128) -> Weigher:
    """Return a worker that computes the weights of tokens."""
    return EncoderWorker(name, encoder, encoder.weigh, queue=queue)

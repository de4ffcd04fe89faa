"""Embeddings of the texts of several requests, computed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tallow.errors import NumericError
from tallow.models.sentence import SentenceEncoder
from tallow.serving.worker import Worker
from tallow.text.tokenizer_engines import Encoded

BATCH_TOKENS = 4096  # of a batch, padding included
GROUP = 64  # requests that are computed together


@dataclass
class Embedded:
    """The vectors (N, D) of a request's texts, and the number of tokens in them."""

    vectors: npt.NDArray[np.float32]
    tokens: int


class EmbeddingWorker(Worker[Sequence[str], Embedded]):
    """Computes the embeddings of texts with one encoder. Texts of all waiting requests form batches of similar length.

    Args:  queue: how many requests may wait
    """

    def __init__(self, name: str, encoder: SentenceEncoder, *, queue: int = 128) -> None:
        super().__init__(name, queue=queue, group=GROUP)
        self.encoder = encoder

    def answer(self, requests: Sequence[Sequence[str]]) -> Sequence[Embedded]:
        encoder = self.encoder
        rows = encoder.tokenize([text for request in requests for text in request])
        vectors: list[npt.NDArray[np.float32]] = [np.empty(0, np.float32)] * len(rows)
        for members in batches(rows):
            embedded = encoder.embed(encoder.tokenizer.pad([rows[i] for i in members]))
            for i, vector in zip(members, embedded, strict=True):
                vectors[i] = vector
        results, start = [], 0
        for request in requests:
            end = start + len(request)
            matrix = np.stack(vectors[start:end])
            if not np.isfinite(matrix).all():
                raise NumericError("a vector holds NaN or infinities", hint="check the weights: tallow inspect --check")
            results.append(Embedded(matrix, sum(len(row.ids) for row in rows[start:end])))
            start = end
        return results


def batches(rows: Sequence[Encoded]) -> Iterator[list[int]]:
    """Yield the indices of rows in batches of at most BATCH_TOKENS, longest rows first."""
    batch: list[int] = []
    for i in sorted(range(len(rows)), key=lambda i: -len(rows[i].ids)):
        if batch and (len(batch) + 1) * len(rows[batch[0]].ids) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch

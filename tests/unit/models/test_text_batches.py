"""Tests of the base of SentenceEncoder, TextClassifier and SparseEncoder."""

from __future__ import annotations

import numpy as np
import pytest
from support.small_encoder import small_encoder

from tallow.errors import ArgumentError
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sparse_encoder import SparseEncoder
from tallow.models.encoders.text_classifier import TextClassifier
from tallow.models.text_batches import Vectors
from tallow.text.tokenizer import Batch

KINDS = [SentenceEncoder, TextClassifier, SparseEncoder]
TEXTS = ["a cat", "a", "a kitten that naps", "a bank"]


def lengths(batch: Batch) -> Vectors:
    return batch.attention_mask.sum(1, keepdims=True).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_quant_is_refused_before_a_download(
    kind: type[SentenceEncoder | TextClassifier | SparseEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*args: object, **options: object) -> None:
        raise AssertionError("a download")

    monkeypatch.setattr(kind, "locate", staticmethod(download))
    with pytest.raises(ArgumentError, match="quant='q9'"):
        kind.from_pretrained("owner/model", quant="q9")


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_each_text_has_its_array(batch_size: int) -> None:
    encoder = small_encoder()
    rows = encoder.tokenize(TEXTS)
    wanted = [len(row.ids) for row in rows]
    assert len(set(wanted)) > 2
    done: list[tuple[int, int]] = []
    arrays = encoder.compute_each(rows, lengths, most=batch_size, progress=lambda *counts: done.append(counts))
    assert arrays[:, 0].tolist() == wanted
    assert done[-1] == (4, 4)
    assert len(done) == -(-4 // batch_size)


def test_no_texts_and_no_batch() -> None:
    encoder = small_encoder()
    assert encoder.compute_each([], lengths, width=5).shape == (0, 5)
    with pytest.raises(ArgumentError, match="batch_size=0"):
        encoder.compute_each(encoder.tokenize(TEXTS), lengths, most=0)

"""Classifiers, cross-encoders and sparse encoders, and prompts, compared with sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.hugging_face import SIZES as SMALL
from support.hugging_face import encoder_folder, minilm_folder

from tallow.errors import ArgumentError, CheckpointError
from tallow.models import SentenceEncoder, SparseEncoder, TextClassifier

transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")
TEXTS = ["A cat sleeps.", "A kitten naps on the sofa.", "", "The bank is closed on Sundays; " * 30]
DISTIL = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 40}
SIZES = {"Bert": SMALL, "DistilBert": DISTIL, "ModernBert": SMALL | {"local_attention": 8}}
SIZES |= {"Roberta": SMALL | {"max_position_embeddings": 514, "type_vocab_size": 1}}


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("name", SIZES)
def test_probabilities_of_pairs(name: str, labels: int, tmp_path: Path) -> None:
    folder = encoder_folder(tmp_path, name, "SequenceClassification", num_labels=labels, **SIZES[name])
    pairs = [(TEXTS[0], text) for text in TEXTS]
    ours = TextClassifier.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    asked = tokenizer(*zip(*pairs, strict=True), padding=True, truncation="only_second", return_tensors="pt")
    if name != "Bert":
        asked.pop("token_type_ids", None)
    with torch.no_grad():
        logits = model(**asked).logits
    np.testing.assert_allclose(ours.logits(pairs, batch_size=3), logits.numpy(), atol=2e-5)
    wanted = torch.sigmoid(logits) if labels == 1 else torch.softmax(logits, -1)
    np.testing.assert_allclose(ours.predict(pairs), wanted.numpy(), atol=1e-5)


def test_ranks_are_those_of_a_cross_encoder(tmp_path: Path) -> None:
    folder = encoder_folder(tmp_path, "Bert", "SequenceClassification", num_labels=1, **SIZES["Bert"])
    theirs = sentence_transformers.CrossEncoder(str(folder), device="cpu").rank(TEXTS[0], TEXTS[:3])
    ours = TextClassifier.from_pretrained(folder).rank(TEXTS[0], TEXTS[:3])
    assert [rank.index for rank in ours] == [rank["corpus_id"] for rank in theirs]
    np.testing.assert_allclose([rank.score for rank in ours], [rank["score"] for rank in theirs], atol=1e-5)


@pytest.mark.parametrize("name", SIZES)
def test_sparse_vectors(name: str, tmp_path: Path) -> None:
    folder = encoder_folder(tmp_path, name, "MaskedLM", **SIZES[name])
    modules = sentence_transformers.sparse_encoder.modules
    parts = [modules.MLMTransformer(str(folder)), modules.SpladePooling(pooling_strategy="max")]
    theirs = sentence_transformers.SparseEncoder(modules=parts, device="cpu")
    expected = theirs.encode(TEXTS, convert_to_sparse_tensor=False)
    ours = SparseEncoder.from_pretrained(folder).encode(TEXTS, batch_size=3)
    np.testing.assert_allclose(ours, np.asarray(expected), atol=3e-5)
    assert 0 < (ours > 0).mean() < 1


def test_prompts(tmp_path: Path) -> None:
    prompts = {"query": "query: ", "passage": "passage: "}
    theirs = sentence_transformers.SentenceTransformer(
        str(minilm_folder()), device="cpu", prompts=prompts, default_prompt_name="passage"
    )
    theirs.save(str(tmp_path))
    ours = SentenceEncoder.from_pretrained(tmp_path)
    for name in (None, "query"):
        expected = theirs.encode(TEXTS[:2], prompt_name=name)
        np.testing.assert_allclose(ours.encode(TEXTS[:2], prompt_name=name), expected, atol=1e-5)
    with pytest.raises(ArgumentError, match="has no prompt 'answer'"):
        ours.encode(TEXTS, prompt_name="answer")


def test_folders_of_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not classify"):
        TextClassifier.from_pretrained(minilm_folder())
    with pytest.raises(CheckpointError, match="no masked language modelling head"):
        SparseEncoder.from_pretrained(minilm_folder())
    folder = encoder_folder(tmp_path, "Bert", "SequenceClassification", num_labels=3, **SIZES["Bert"])
    with pytest.raises(ArgumentError, match="3 labels"):
        TextClassifier.from_pretrained(folder).rank("a", ["b"])

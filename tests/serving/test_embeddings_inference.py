"""The endpoints of text-embeddings-inference: the library's numbers, for HTTP and for `huggingface_hub`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import InferenceClient
from support.hugging_face import classifier_folder, minilm_folder, splade_folder
from support.read_fields import read_by
from support.small_server import KEY, Running, get, post, running

from tallow.models import SentenceEncoder, SparseEncoder, TextClassifier
from tallow.serving.catalog import Catalog
from tallow.serving.encoding import embedder, labeller, weigher
from tallow.serving.http.app import POSTS, make_app
from tallow.serving.http.application import Access
from tallow.serving.http.errors import TEI_PATHS
from tallow.serving.http.openapi import EXAMPLES

TEXTS = ["A cat sleeps.", "A kitten naps on the sofa.", "The bank is closed on Sundays."]
LONG = "word " * 600


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("models")
    encoder = SentenceEncoder.from_pretrained(minilm_folder())
    encoder.prompts = {"query": "query: "}
    return {
        "minilm": encoder,
        "reranker": TextClassifier.from_pretrained(classifier_folder(folder / "reranker", labels=1)),
        "classifier": TextClassifier.from_pretrained(classifier_folder(folder / "classifier", labels=3)),
        "splade": SparseEncoder.from_pretrained(splade_folder(folder / "splade")),
    }


@pytest.fixture(scope="module")
def server(models: dict[str, Any]) -> Iterator[Running]:
    catalog = Catalog(
        encoders={"minilm": embedder("minilm", models["minilm"])},
        labellers={name: labeller(name, models[name]) for name in ("reranker", "classifier")},
        weighers={"splade": weigher("splade", models["splade"])},
    )
    with running(make_app(catalog, Access((KEY,), most_bytes=1 << 20, most_json=1 << 20)), catalog) as started:
        yield started


def ask(server: Running, path: str, **body: Any) -> Any:
    status, answer, _ = post(server, path, body)
    assert status == 200, answer
    return answer


def test_vectors(server: Running, models: dict[str, Any]) -> None:
    wanted = models["minilm"].encode(TEXTS, normalize=True)
    np.testing.assert_allclose(ask(server, "/embed", inputs=TEXTS), wanted, atol=1e-5)
    np.testing.assert_allclose(ask(server, "/embed", inputs=TEXTS[0]), wanted[:1], atol=1e-5)
    ids = [row.ids for row in models["minilm"].tokenize(TEXTS)]
    np.testing.assert_allclose(ask(server, "/embed", inputs=ids), wanted, atol=1e-5)
    np.testing.assert_allclose(ask(server, "/embed", inputs=ids[0]), wanted[:1], atol=1e-5)
    assert post(server, "/embed", {"inputs": [5] * 600})[0] == 413
    assert len(ask(server, "/embed", inputs=[5] * 600, truncate=True)) == 1
    np.testing.assert_allclose(ask(server, "/", inputs=TEXTS), wanted, atol=1e-5)
    raw = ask(server, "/embed", inputs=TEXTS, normalize=False, prompt_name="query")
    np.testing.assert_allclose(raw, models["minilm"].encode(TEXTS, prompt_name="query"), atol=1e-5)
    short = np.array(ask(server, "/embed", inputs=TEXTS, dimensions=8))
    np.testing.assert_allclose(short, wanted[:, :8] / np.linalg.norm(wanted[:, :8], axis=1, keepdims=True), atol=1e-5)


def test_vectors_of_all_tokens(server: Running, models: dict[str, Any]) -> None:
    from transformers import AutoModel, AutoTokenizer

    model, words = (kind.from_pretrained(minilm_folder()) for kind in (AutoModel, AutoTokenizer))
    for text, vectors in zip(TEXTS, ask(server, "/embed_all", inputs=TEXTS), strict=True):
        expected = model(**words(text, return_tensors="pt")).last_hidden_state[0].detach().numpy()
        np.testing.assert_allclose(vectors, expected, atol=2e-5)


def test_sparse_vectors(server: Running, models: dict[str, Any]) -> None:
    wanted = models["splade"].encode(TEXTS)
    for weights, entries in zip(wanted, ask(server, "/embed_sparse", inputs=TEXTS), strict=True):
        assert [entry["index"] for entry in entries] == np.flatnonzero(weights).tolist()
        np.testing.assert_allclose([entry["value"] for entry in entries], weights[weights > 0], atol=1e-5)


def test_ranks(server: Running, models: dict[str, Any]) -> None:
    wanted = models["reranker"].rank("Where do cats sleep?", TEXTS)
    body = {"query": "Where do cats sleep?", "texts": TEXTS}
    ranked = ask(server, "/rerank", **body)
    assert [rank["index"] for rank in ranked] == [rank.index for rank in wanted]
    assert [rank["score"] for rank in ranked] == pytest.approx([rank.score for rank in wanted], abs=1e-5)
    assert "text" not in ranked[0]
    raw = ask(server, "/rerank", **body, raw_scores=True, return_text=True)
    assert [rank["text"] for rank in raw] == [TEXTS[rank.index] for rank in wanted]
    logits = np.log(np.divide([rank.score for rank in wanted], [1 - rank.score for rank in wanted]))
    np.testing.assert_allclose([rank["score"] for rank in raw], logits, atol=1e-3)


def test_labels(server: Running, models: dict[str, Any]) -> None:
    wanted = models["classifier"].predict([TEXTS[0], (TEXTS[0], TEXTS[1])])
    labels = models["classifier"].labels
    one = ask(server, "/predict", inputs=TEXTS[0], model="classifier")
    pair = ask(server, "/predict", inputs=TEXTS[:2], model="classifier")
    both = ask(server, "/predict", inputs=[TEXTS[:1], TEXTS[:2]], model="classifier")
    assert [[entry["label"] for entry in entries] for entries in (one, pair)] == [
        [entry["label"] for entry in entries] for entries in both
    ]
    for row, entries in zip(wanted, both, strict=True):
        assert [entry["score"] for entry in entries] == pytest.approx(sorted(row, reverse=True), abs=1e-5)
        assert [entry["label"] for entry in entries] == [labels[i] for i in np.argsort(-row)]


def test_tokens_and_texts(server: Running, models: dict[str, Any]) -> None:
    (tokens,) = ask(server, "/tokenize", inputs=TEXTS[0])
    assert [token["id"] for token in tokens] == models["minilm"].tokenizer.encode(TEXTS[0])
    assert [token["special"] for token in tokens] == [True, False, False, False, False, True]
    assert [TEXTS[0][token["start"] : token["stop"]] for token in tokens[1:-1]] == ["A", "cat", "sleeps", "."]
    assert len(ask(server, "/tokenize", inputs=TEXTS[0], add_special_tokens=False)[0]) == 4
    ids = [token["id"] for token in tokens]
    assert ask(server, "/decode", ids=ids) == ask(server, "/decode", ids=[ids]) == ["a cat sleeps."]
    assert ask(server, "/decode", ids=[float(each) for each in ids]) == ["a cat sleeps."]
    assert ask(server, "/decode", ids=ids, skip_special_tokens=False) == ["[CLS] a cat sleeps. [SEP]"]


@pytest.mark.parametrize("path", sorted(TEI_PATHS))
def test_examples_of_the_document(server: Running, path: str) -> None:
    ask(server, path, **EXAMPLES[path])


def test_info(server: Running) -> None:
    assert get(server, "/info")[1]["model_type"] == {"embedding": {"pooling": "mean"}}
    assert get(server, "/info")[1]["max_input_length"] == 256
    kind = get(server, "/info?model=classifier")[1]["model_type"]["classifier"]
    assert kind["label2id"] == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
    assert "reranker" in get(server, "/info?model=reranker")[1]["model_type"]


def test_the_hub_package(server: Running, models: dict[str, Any]) -> None:
    wanted = models["minilm"].encode(TEXTS, normalize=True)
    client = InferenceClient(f"{server.url}/embed", token=KEY)
    np.testing.assert_allclose(client.feature_extraction(TEXTS[0])[0], wanted[0], atol=1e-5)
    shorter = client.feature_extraction(LONG, truncate=True, normalize=True)
    np.testing.assert_allclose(shorter[0], models["minilm"].encode(LONG), atol=1e-5)
    client = InferenceClient(f"{server.url}/similarity", token=KEY)
    similar = client.sentence_similarity(TEXTS[0], other_sentences=TEXTS[1:])
    assert similar == pytest.approx((wanted[1:] @ wanted[0]).tolist(), abs=1e-5)


BAD: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "too long": ("/embed", {"inputs": LONG}, 413, "Validation"),
    "too many": ("/embed", {"inputs": ["a"] * 3000}, 413, "Validation"),
    "no texts": ("/embed", {"inputs": []}, 422, "Tokenizer"),
    "an empty text": ("/embed", {"inputs": [""]}, 422, "Tokenizer"),
    "a number": ("/embed", {"inputs": 3}, 422, "Tokenizer"),
    "an unknown prompt": ("/embed", {"inputs": "a", "prompt_name": "answer"}, 422, "Tokenizer"),
    "on no side": ("/embed", {"inputs": "a", "truncation_direction": "Up"}, 422, "Tokenizer"),
    "a lone surrogate": ("/embed", {"inputs": "\ud800"}, 422, "Tokenizer"),
    "dimensions": ("/embed", {"inputs": "a", "dimensions": 1000}, 422, "Tokenizer"),
    "no query": ("/rerank", {"texts": ["a"]}, 422, "Tokenizer"),
    "ranks by a classifier": ("/rerank", {"query": "a", "texts": ["a"], "model": "classifier"}, 422, "Tokenizer"),
    "three texts": ("/predict", {"inputs": ["a", "b", "c"]}, 422, "Tokenizer"),
    "pairs of numbers": ("/predict", {"inputs": [["a"], [3]]}, 422, "Tokenizer"),
    "no object": ("/similarity", {"inputs": "a"}, 422, "Tokenizer"),
    "ids that are none": ("/decode", {"ids": ["a"]}, 422, "Tokenizer"),
    "huge ids": ("/decode", {"ids": [10**30]}, 422, "Tokenizer"),
    "an unknown model": ("/embed", {"inputs": "a", "model": "b"}, 404, "Validation"),
}


def test_truncation_direction(server: Running) -> None:
    cats, dogs = "cat " * 600, "dog " * 600  # each is longer than the limit
    for direction, end in {"Right": cats, "Left": dogs}.items():
        cut = ask(server, "/embed", inputs=cats + dogs, truncate=True, truncation_direction=direction)
        np.testing.assert_allclose(cut, ask(server, "/embed", inputs=end, truncate=True), atol=1e-6)


@pytest.mark.parametrize("name", BAD)
def test_errors(server: Running, name: str) -> None:
    path, body, status, kind = BAD[name]
    answer = post(server, path, body)
    assert answer[:1] == (status,), answer
    assert set(answer[1]) == {"error", "error_type"}
    assert answer[1]["error_type"] == kind
    assert post(server, path, body, key="another")[:1] == (401,)


def test_not_a_number_ends_one_request_only(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = server.catalog.encoders["minilm"]
    embed = worker.encoder.embed
    monkeypatch.setattr(worker, "_compute", lambda batch: embed(batch) * np.where(len(batch.input_ids) > 1, np.nan, 1))
    status, answer, _ = post(server, "/embed", {"inputs": TEXTS})
    assert (status, answer["error_type"]) == (424, "Backend")
    assert post(server, "/embed", {"inputs": TEXTS[0]})[0] == 200


def test_paths(tmp_path: Path) -> None:
    """Without a model of a kind, its endpoints say which option loads one."""
    catalog = Catalog()
    with running(make_app(catalog), catalog) as server:
        for path, option in (("/embed", "--embed"), ("/rerank", "--rerank"), ("/embed_sparse", "--sparse")):
            status, answer, _ = post(server, path, {"inputs": "a"})
            assert status == 404
            assert option in answer["error"]


def test_vectors_of_too_many_tokens(server: Running) -> None:
    long = "a b c d e f g h " * 2
    status, answer, _ = post(server, "/embed_all", {"inputs": [long] * 2048, "truncate": True})
    assert (status, answer["error_type"]) == (413, "Validation")


@pytest.mark.parametrize("path", ["/rerank", "/predict", "/embed_sparse"])
def test_the_fields_of_the_document_are_those_that_are_read(server: Running, path: str) -> None:
    engine = next(iter(getattr(server.catalog, POSTS[path].kind.engines).values()))
    assert read_by(path, EXAMPLES[path], engine) == POSTS[path].table.read.keys()

"""Sentence embeddings: poolings by formula, batch invariance, and sentence-transformers folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_encoder import small_encoder

import tallow as tl
from tallow.errors import ArgumentError, CheckpointError
from tallow.io import safetensors
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sentence_parts import POOLINGS, Dense, Normalize, Pooling

X = np.float32([[[1, 2], [3, 5], [7, 11]], [[2, 0], [4, 6], [9, 9]]])
MASK = np.int64([[1, 1, 1], [1, 1, 0]])
EXPECTED = {
    "cls": [[1, 2], [2, 0]],
    "max": [[7, 11], [4, 6]],
    "mean": [[11 / 3, 6], [3, 3]],
    "mean_sqrt_len_tokens": [[11 / 3**0.5, 18 / 3**0.5], [6 / 2**0.5, 6 / 2**0.5]],
    "weightedmean": [[(1 + 6 + 21) / 6, (2 + 10 + 33) / 6], [(2 + 8) / 3, 12 / 3]],
    "lasttoken": [[7, 11], [4, 6]],
}


@pytest.mark.parametrize("mode", POOLINGS)
def test_pooling(mode: str) -> None:
    pooled = Pooling(mode)(tl.as_tensor(X), tl.as_tensor(MASK))
    np.testing.assert_allclose(pooled.numpy(), EXPECTED[mode], rtol=1e-6)


def test_vectors_of_several_poolings_are_joined() -> None:
    pooled = Pooling("cls", "max")(tl.as_tensor(X), tl.as_tensor(MASK))
    np.testing.assert_allclose(pooled.numpy(), np.concatenate([EXPECTED["cls"], EXPECTED["max"]], 1))


@pytest.mark.parametrize(
    ("entries", "modes"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, ("mean",)),
        ({"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}, ("cls", "max")),
        ({"pooling_mode": "lasttoken", "embedding_dimension": 3}, ("lasttoken",)),
        ({"pooling_mode": ["mean", "max"]}, ("mean", "max")),
        ({"word_embedding_dimension": 3}, ("mean",)),
    ],
)
def test_config_of_a_pooling(entries: dict[str, Any], modes: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    assert Pooling.from_json(path).modes == modes


@pytest.mark.parametrize("entries", [{"pooling_mode": "median"}, {"pooling_mode_median": True}])
def test_unknown_pooling(entries: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    with pytest.raises(CheckpointError, match="median"):
        Pooling.from_json(path)


@pytest.fixture
def encoder() -> SentenceEncoder:
    return small_encoder()


# A BLAS may sum in a different order for other shapes. Two layers have about ten sums each, of normalized values up to
# 4 that may nearly cancel: the error is a few hundred times float32's 1.2e-7 at most, where a mistake is 0.01.
ROUNDING = 1e-5
TEXTS = ["", "ab", "abcdefgh", "b", "hello", "ba", "hellohellohello"]


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_batches_of_any_size_give_the_same_vectors(encoder: SentenceEncoder, batch_size: int) -> None:
    vectors = encoder.encode(TEXTS, batch_size=batch_size)
    assert vectors.shape == (len(TEXTS), 8)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(encoder.encode(text), vector, atol=ROUNDING)


def test_mean_ignores_padding(encoder: SentenceEncoder) -> None:
    ids = tl.tensor([[1, *(3 + ord(letter) % 17 for letter in "ab"), 2]])
    expected = encoder.model(ids).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(encoder.encode(TEXTS)[1], expected.detach().numpy(), atol=ROUNDING)


def test_text_is_truncated_to_the_limit(encoder: SentenceEncoder) -> None:
    np.testing.assert_allclose(encoder.encode("hellohel"), encoder.encode("hellohellohello"), atol=1e-6)


def test_normalize_and_progress(encoder: SentenceEncoder) -> None:
    seen: list[tuple[int, int]] = []
    vectors = encoder.encode(TEXTS, batch_size=3, normalize=True, progress=lambda *done: seen.append(done))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert seen == [(3, 7), (6, 7), (7, 7)]


def test_no_texts(encoder: SentenceEncoder) -> None:
    assert encoder.encode([]).shape == (0, 0)


def test_batch_of_nothing_is_refused(encoder: SentenceEncoder) -> None:
    with pytest.raises(ArgumentError, match="batch_size=0"):
        encoder.encode(TEXTS, batch_size=0)


def test_lowercase_models_ignore_case(encoder: SentenceEncoder) -> None:
    assert not np.allclose(encoder.encode("ABC"), encoder.encode("abc"))
    encoder.lowercase = True
    np.testing.assert_array_equal(encoder.encode(["Abc"]), encoder.encode(["abc"]))


def dense_folder(folder: Path, **entries: Any) -> Path:
    config = {
        "in_features": 2,
        "out_features": 3,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    (folder / "config.json").write_text(json.dumps(config | entries), encoding="utf-8")
    weights = {"linear.weight": tl.tensor([[1.0, 2], [0, 1], [3, 0]]), "linear.bias": tl.tensor([0.5, 0, -1])}
    safetensors.save(weights, folder / "model.safetensors")
    return folder


def test_dense(tmp_path: Path) -> None:
    dense = Dense.from_pretrained(dense_folder(tmp_path)).to(tl.get_default_device())
    np.testing.assert_allclose(dense(tl.tensor([[1.0, -1]])).detach().numpy(), [np.tanh([-0.5, -1, 2])], rtol=1e-6)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"activation_function": "os.system"}, "activation 'os.system'"),
        ({"activation_function": "torch.nn.modules.activation.Threshold"}, "Threshold"),
        ({"use_residual": True}, "missing      residual.weight"),
        ({"module_input_name": "token_embeddings"}, "module_input_name is 'token_embeddings'"),
        ({"in_features": 0}, "in_features=0"),
        ({"in_features": 3}, "wrong shape  linear.weight"),
    ],
)
def test_dense_of_an_unsupported_kind(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        Dense.from_pretrained(dense_folder(tmp_path, **entries))
    assert message in str(caught.value)


def test_normalize() -> None:
    np.testing.assert_allclose(Normalize()(tl.tensor([[3.0, 4]])).numpy(), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ("[", "not valid JSON"),
        ("{}", "not a JSON list"),
        ("[1]", "not a list of modules"),
        ('[{"path": "../../etc", "type": "Pooling"}]', "is not the name of a subfolder"),
        ('[{"path": "C:etc", "type": "Pooling"}]', "is not the name of a subfolder"),
        ('[{"path": "a\\u0000", "type": "Pooling"}]', "is not the name of a subfolder"),
        ('[{"path": "1_LSTM", "type": "sentence_transformers.models.LSTM"}]', "of kind 'LSTM'"),
    ],
)
def test_modules_that_cannot_be_used(modules: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(modules, encoding="utf-8")
    with pytest.raises(CheckpointError) as caught:
        SentenceEncoder.from_pretrained(tmp_path)
    assert message in str(caught.value)

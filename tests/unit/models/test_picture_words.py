"""The encoder of pictures and words: groups of characters, vectors, files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentError, CheckpointError, ShapeError
from tallow.io import safetensors
from tallow.models.vision.picture_words import PictureWords, PictureWordsConfig, groups_of, words_of
from tallow.models.vision.scenes import narrowed

TINY = PictureWordsConfig(buckets=4096, embedding=64, width=4, blocks=(0, 0, 1), side=16)


@pytest.fixture(scope="module")
def model() -> PictureWords:
    tl.manual_seed(0)
    return PictureWords(TINY).eval()


def test_words_are_of_one_script_each_and_have_no_accents() -> None:
    assert list(words_of("Élan, rote Äpfel-2")) == ["elan", "rote", "apfel", "2"]
    assert list(words_of("新しいcar")) == ["新しい", "car"]
    assert list(words_of("…")) == []


def test_groups_of_a_text_do_not_depend_on_the_others(model: PictureWords) -> None:
    groups = groups_of(["apple pie", "", "猫"], 4096)
    assert groups.starts.tolist() == [0, len(groups.buckets) - 1, len(groups.buckets) - 1]  # one group in the last text
    together = model.encode_texts(["apple pie", "", "猫"])
    np.testing.assert_allclose(together[0], model.encode_texts("apple pie"), atol=1e-6)
    assert not together[1].any()
    np.testing.assert_allclose(np.linalg.norm(together[[0, 2]], axis=1), 1, atol=1e-6)
    with pytest.raises(ArgumentError, match="no texts"):
        model.encode_texts([])


def test_words_that_resemble_are_nearer(model: PictureWords) -> None:
    apple, apples, train = model.encode_texts(["apple", "APPLES", "train"])
    assert apple @ apples > 0.3 + apple @ train


def test_pictures_have_vectors_of_length_one(model: PictureWords) -> None:
    pictures = list(np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), np.uint8))
    vectors = model.encode(pictures, batch_size=2)
    assert vectors.shape == (3, 64)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert model.encode([]).shape == (0, 64)
    with pytest.raises(ShapeError, match=r"expected uint8 \(16, 16, 3\)"):
        model.encode([pictures[0][:8]])
    with pytest.raises(ArgumentError, match="batch_size=0"):
        model.encode(pictures, batch_size=0)


def test_files_give_the_vectors_back(model: PictureWords, tmp_path: Path) -> None:
    config, weights = tmp_path / "config.json", tmp_path / "model.safetensors"
    config.write_text(json.dumps(vars(TINY)), encoding="utf-8")
    safetensors.save(narrowed(model.state_dict()), weights)
    stored = PictureWords.from_files(config, weights)
    np.testing.assert_allclose(stored.encode_texts("apple"), model.encode_texts("apple"), atol=0.02)
    config.write_text('{"depth": 3}', encoding="utf-8")
    with pytest.raises(CheckpointError, match="not the configuration"):
        PictureWords.from_files(config, weights)

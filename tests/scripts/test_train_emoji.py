"""scripts/train_emoji.py: names that are held out, pictures, ranks, and training that can be interrupted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emoji_words import evaluation, names
from emoji_words.names import Name, Names
from emoji_words.pictures import plain, varied
from emoji_words.settings import Settings
from emoji_words.training import Training, export
from muon_adamw import orthogonal
from PIL import Image, ImageDraw

from tallow.models.built_in import emoji as built_in
from tallow.models.vision.picture_words import PictureWords, PictureWordsConfig

TINY = Settings(steps=4, batch_size=2, texts=4, warmup_steps=1, validate_every=2, checkpoint_every=2)


@pytest.fixture(scope="module")
def glyphs() -> list[list[Image.Image]]:
    """A red disc and a green square."""
    pictures = []
    for colour, shape in (("red", "ellipse"), ("lime", "rectangle")):
        picture = Image.new("RGBA", (64, 64))
        getattr(ImageDraw.Draw(picture), shape)((4, 4, 60, 60), fill=colour)
        pictures.append([picture])
    return pictures


@pytest.fixture(scope="module")
def texts() -> Names:
    return Names("🔴🟩", [["red", "disc"], ["green", "square"]], [Name(0, "en", "red disc"), Name(1, "en", "squares")])


def test_names_that_are_held_out_are_in_no_text_of_their_emoji(tmp_path: Path) -> None:
    entries = {chr(0x1F400 + i): {"tts": [f"Beast {i}"], "default": [f"beast {i}", f"kind {i}"]} for i in range(50)}
    entries["🍎"] = {"tts": ["Apple"], "default": ["apple"]}  # has no other text
    for language in names.LANGUAGES:
        tables = {"annotations": {"annotations": entries | {"ab": {"tts": ["two"], "default": ["two"]}}}}
        (tmp_path / f"{language}.json").write_text(json.dumps(tables), encoding="utf-8")
    emoji = names.candidates(tmp_path)
    assert set(emoji) == {*entries}
    read = names.read(tmp_path, emoji, 0.1, 1)
    assert len(read.held_out) > 20
    for name in read.held_out:
        assert names.form(name.text) not in [names.form(text) for text in read.texts[name.emoji]]
    assert read.texts[emoji.index("🍎")] == ["Apple"]


def test_pictures_have_the_emoji_on_a_ground(glyphs: list[list[Image.Image]]) -> None:
    disc = plain(glyphs[0][0], 48)
    assert disc[0, 0].tolist() == [255, 255, 255]
    assert disc[24, 24].tolist() == [255, 0, 0]
    rng = np.random.default_rng(0)
    assert len({varied(glyphs[0][0], 48, rng).tobytes() for _ in range(5)}) == 5


def test_ranks_count_what_is_as_near(texts: Names) -> None:
    encoder = PictureWords(PictureWordsConfig(buckets=64))
    vectors = encoder.encode_texts(["red disc", "squares"])
    assert evaluation.ranks(encoder, texts.held_out, vectors).tolist() == [0, 0]
    assert evaluation.ranks(encoder, texts.held_out, vectors[::-1]).tolist() == [1, 1]
    assert evaluation.recall(encoder, texts.held_out, np.stack([vectors[0]] * 2), 1) == 0  # all pictures alike


def test_an_update_of_muon_is_almost_orthogonal() -> None:
    for shape in ((5, 9), (9, 5)):
        matrix = orthogonal(np.random.default_rng(0).normal(size=shape).astype(np.float32))
        values = np.linalg.svd(matrix, compute_uv=False)
        assert values.min() > 0.3
        assert values.max() < 1.5


def test_an_interrupted_run_ends_with_the_same_weights(
    glyphs: list[list[Image.Image]], texts: Names, tmp_path: Path
) -> None:
    whole = Training(TINY, texts, glyphs, tmp_path / "whole.safetensors")
    list(whole.run())
    halted = Training(TINY, texts, glyphs, tmp_path / "halves.safetensors")
    for _ in halted.run(stop=lambda: halted.step == 1):
        pass
    resumed = Training(TINY, texts, glyphs, tmp_path / "halves.safetensors")
    resumed.resume()
    for _ in resumed.run():
        pass
    for name, tensor in whole.model.state_dict().items():
        assert np.array_equal(tensor.numpy(), resumed.model.state_dict()[name].numpy()), name
    export(whole, texts.emoji, tmp_path / "model")
    index = built_in.read_index(tmp_path / "model" / built_in.INDEX)
    assert index.emoji == ("🔴", "🟩")
    stored = PictureWords.from_files(tmp_path / "model" / "config.json", tmp_path / "model" / "model.safetensors")
    assert index.vectors.shape == (2, stored.config.embedding)


def test_pictures_and_words_are_learned(glyphs: list[list[Image.Image]], texts: Names, tmp_path: Path) -> None:
    training = Training(replace(TINY, steps=30, validate_every=30), texts, glyphs, tmp_path / "x.safetensors")
    losses = np.array(list(training.run()))
    assert (losses[-5:].mean(0) < 0.5 * losses[:5].mean(0)).all()

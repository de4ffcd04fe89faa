"""scripts/train_scenes.py: scenes, the cells that answer for things, scores, and training that can be interrupted."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from batch_norms import with_norms
from PIL import Image, ImageDraw
from scenes import evaluation, kinds
from scenes.assignment import assign
from scenes.batches import batch_of, scene
from scenes.composing import Glyphs, Scene
from scenes.settings import Settings
from scenes.training import Training, export, without_norms

import tallow as tl
from tallow.models.vision.scenes import SceneDetector, as_input, cell_centres

TINY = Settings(
    kinds=2,
    side=64,
    width=4,
    largest=50,
    steps=4,
    batch_size=2,
    warmup_steps=1,
    mask_samples=4,
    validate_every=2,
    validation_scenes=2,
    checkpoint_every=2,
)


@pytest.fixture(scope="module")
def glyphs() -> Glyphs:
    """A red disc and a green square; a blue bar is nothing to find."""
    pictures = []
    for colour, shape in (("red", "ellipse"), ("lime", "rectangle"), ("blue", "rectangle")):
        picture = Image.new("RGBA", (64, 64))
        getattr(ImageDraw.Draw(picture), shape)((4, 4, 60, 60 if colour != "blue" else 12), fill=colour)
        pictures.append(picture)
    return Glyphs([[pictures[0]], [pictures[1]]], [pictures[2]])


def test_equal_keys_give_equal_scenes(glyphs: Glyphs) -> None:
    first, again, other = (scene(glyphs, TINY, 0, key) for key in (1, 1, 2))
    assert np.array_equal(first.pixels, again.pixels)
    assert np.array_equal(first.masks, again.masks)
    assert not np.array_equal(first.pixels, other.pixels)


def test_boxes_are_those_of_the_visible_parts(glyphs: Glyphs) -> None:
    things = 0
    for key in range(40):
        it = scene(glyphs, TINY, 3, key)
        assert it.pixels.shape == (64, 64, 3)
        assert not (it.masks.sum(0) > 1).any()  # what covers another is not part of it
        for mask, box in zip(it.masks, it.boxes, strict=True):
            rows, columns = np.nonzero(mask)
            assert box.tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            things += 1
    assert things > 40


def test_cells_answer_for_the_smallest_thing_around_them() -> None:
    boxes = np.array([[0, 0, 64, 64], [20, 20, 36, 36], [1, 1, 4, 4]], np.float32)
    cells, things = assign(boxes, 64)
    assert len(set(cells)) == len(cells)
    assert set(things) == {0, 1, 2}  # the last has no centre of a cell in it
    centres = cell_centres(64, 64)
    of_second = centres[cells[things == 1]]
    assert ((of_second > 20) & (of_second < 36)).all()
    strides = np.where(cells < 64, 8, 16)
    assert set(strides[things == 0]) == {16}
    assert set(strides[things == 1]) == {8}


def test_scenes_without_things_have_no_cells(glyphs: Glyphs) -> None:
    empty = Scene(
        np.zeros((64, 64, 3), np.uint8),
        np.zeros(0, np.int64),
        np.zeros((0, 4), np.float32),
        np.zeros((0, 64, 64), bool),
    )
    full = scene(glyphs, TINY, 3, 0)
    batch = batch_of([empty, full], TINY, np.random.default_rng(0))
    assert (batch.cells >= 80).all()  # the first scene has 64 + 16 cells
    assert set(batch.mask_scenes) == {1}
    np.testing.assert_allclose(batch.windows.sum(1), 1, rtol=1e-5)


def test_average_precision() -> None:
    """Three of four things found, by hand: precision 1, 1, 2/3, 3/4 at recalls 1/4, 1/2, 1/2, 3/4."""
    scores, labels = np.array([0.9, 0.8, 0.7, 0.6]), np.zeros(4, np.int64)
    hit = np.array([[1, 0, 0, 0], [0, 0.6, 0, 0], [0, 0.55, 0, 0], [0, 0, 0.5, 0.2]])  # the third is a second time
    truth = np.zeros(4, np.int64)
    found = evaluation.mean_precision([(scores, labels)], [truth], 2, lambda i, mine, true: hit)
    assert found == pytest.approx((51 * 1 + 25 * 0.75) / 101)  # of 101 levels of recall, up to 1/2 and up to 3/4
    none = evaluation.mean_precision([(scores, labels)], [truth], 2, lambda i, mine, true: 0 * hit)
    assert none == 0


def test_folded_norms_give_the_outputs_of_the_training_model() -> None:
    tl.manual_seed(0)
    model = with_norms(SceneDetector(TINY.config()))
    pixels = as_input(np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8))
    model.train()
    model(pixels)  # statistics that are not those of the start
    model.eval()
    for mine, folded in zip(model(pixels), without_norms(model, TINY)(pixels), strict=True):
        np.testing.assert_allclose(folded.detach().numpy(), mine.detach().numpy(), rtol=1e-3, atol=1e-3)


def test_an_interrupted_run_ends_with_the_same_weights(glyphs: Glyphs, tmp_path: Path) -> None:
    whole = Training(TINY, glyphs, tmp_path / "whole.safetensors")
    losses = list(whole.run())
    assert all(math.isfinite(loss) for step in losses for loss in step)
    halted = Training(TINY, glyphs, tmp_path / "halves.safetensors")
    for _ in halted.run(stop=lambda: halted.step == 1):
        pass
    resumed = Training(TINY, glyphs, tmp_path / "halves.safetensors")
    resumed.resume()
    assert resumed.step == 2
    for _ in resumed.run():
        pass
    for name, tensor in whole.model.state_dict().items():
        assert np.array_equal(tensor.numpy(), resumed.model.state_dict()[name].numpy()), name
    export(whole, tmp_path / "model")
    loaded = SceneDetector.from_files(tmp_path / "model" / "config.json", tmp_path / "model" / "model.safetensors")
    assert loaded.labels == tuple(kinds.KINDS)[:2]


def test_perfect_answers_have_small_losses(glyphs: Glyphs, tmp_path: Path) -> None:
    """Answers that are the targets themselves: boxes lose nothing."""
    training = Training(replace(TINY, steps=1), glyphs, tmp_path / "x.safetensors")
    boxes = np.array([[10, 12, 30, 40]], np.float32)
    centre = cell_centres(64, 64)[27]
    heads = training.model(as_input(np.zeros((1, 64, 64, 3), np.uint8)))
    exact = np.concatenate([centre - boxes[0, :2], boxes[0, 2:] - centre])
    distances = heads.distances.detach().numpy().copy()
    distances[0, 27] = exact
    overlap, loss = training._boxes(
        heads._replace(distances=tl.from_numpy(distances)), tl.tensor([27]), tl.from_numpy(boxes)
    )
    assert overlap.item() == pytest.approx(1)
    assert loss.item() == pytest.approx(0, abs=1e-6)


def test_emoji_of_the_font(emoji: None) -> None:
    from scenes.glyphs import of_font

    drawn = of_font(list(kinds.KINDS.values()))
    assert len(drawn) == len(kinds.KINDS) == 40
    assert len({picture.tobytes() for picture in drawn}) == 40
    assert all(max(picture.size) == 128 for picture in drawn)
    assert not set(kinds.KINDS.values()) & set(kinds.OTHERS)

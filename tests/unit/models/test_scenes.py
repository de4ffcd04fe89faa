"""The small detector of scenes: files, cells, masks, and pictures of any size."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tallow as tl
from tallow.errors import CheckpointError, NumericError
from tallow.io import safetensors
from tallow.models.vision.scene_finder import SceneFinder, masks_of
from tallow.models.vision.scenes import (
    Candidates,
    SceneConfig,
    SceneDetector,
    as_input,
    cell_centres,
    narrowed,
    widened,
)
from tallow.vision import Letterboxed

CONFIG = SceneConfig(labels=("cat", "dog", "fox"), emoji=("C", "D", "F"), width=4, blocks=(1, 1, 1), prototypes=2)


@pytest.fixture
def model() -> SceneDetector:
    tl.manual_seed(0)
    return SceneDetector(CONFIG).eval()


def test_shapes(model: SceneDetector) -> None:
    heads = model(as_input(np.zeros((2, 48, 64, 3), np.uint8)).to(model.stem.weight.device))
    cells = 6 * 8 + 3 * 4
    assert [tuple(head.shape) for head in heads] == [
        (2, cells, 3),
        (2, cells),
        (2, cells, 4),
        (2, cells, 2),
        (2, 2, 12, 16),
    ]
    assert (heads.distances > 0).all().item()


def test_cells_are_row_by_row_and_the_fine_scale_first() -> None:
    centres = cell_centres(32, 48)
    assert len(centres) == 24 + 6
    assert centres[:2].tolist() == [[4, 4], [12, 4]]
    assert centres[6].tolist() == [4, 12]
    assert centres[24].tolist() == [8, 8]


def test_pictures_are_from_minus_one_to_one() -> None:
    pixels = np.zeros((1, 2, 2, 3), np.uint8)
    pixels[0, 0, 1, 2] = 255
    x = as_input(pixels).numpy()
    assert x.shape == (1, 3, 2, 2)
    assert x[0, 2, 0, 1] == 1
    assert x.sum() == -10


def test_weights_of_files_are_near_those_of_the_model(model: SceneDetector) -> None:
    state = model.state_dict()
    stored = narrowed(state)
    assert {str(it.dtype) for name, it in stored.items() if state.get(name, it).ndim == 4} == {"tallow.int8"}
    for name, tensor in widened(stored).items():
        mine, found = state[name].detach().cpu().numpy(), tensor.numpy()
        step = np.abs(mine).reshape(len(mine), -1).max(1) / 127 if mine.ndim == 4 else np.zeros(len(mine))
        assert (np.abs(found - mine).reshape(len(mine), -1).max(1) <= 0.501 * step).all(), name


def test_files_load(model: SceneDetector) -> None:
    config = json.dumps({"labels": ["cat", "dog", "fox"], "width": 4, "blocks": [1, 1, 1], "prototypes": 2}).encode()
    weights = b"".join(bytes(part) for part in safetensors.encode(narrowed(model.state_dict())))
    loaded = SceneDetector.from_files(config, weights)
    assert loaded.labels == CONFIG.labels
    assert not loaded.training
    for bad in (b"{}", b"[1]", b"\xff", b'{"labels": ["a"], "height": 3}', b'{"labels": 3}'):
        with pytest.raises(CheckpointError, match="not the configuration"):
            SceneDetector.from_files(bad, weights)
    for size in ({"width": 10**7}, {"prototypes": 10**12}, {"blocks": [10**9, 1, 1]}):  # take no memory or time
        with pytest.raises(CheckpointError):
            SceneDetector.from_files(json.dumps({"labels": ["cat", "dog", "fox"], **size}).encode(), weights)


class Stub:
    """Finds the same candidates in every picture."""

    config = CONFIG
    labels = CONFIG.labels

    def __init__(self, candidates: Candidates) -> None:
        self.found = candidates
        self.shapes: list[tuple[int, ...]] = []

    def candidates(self, pixels: np.ndarray, threshold: float) -> Candidates:
        self.shapes.append(pixels.shape)
        return self.found


def test_boxes_of_one_thing_are_joined() -> None:
    boxes = np.array([[0, 0, 20, 20], [1, 0, 21, 20], [0, 0, 20, 20], [0, 0, 20, 20], [30, 30, 44, 44]], np.float32)
    scores = np.array([0.5, 0.9, 0.4, 0.7, 0.2], np.float32)
    labels = np.array([0, 0, 0, 1, 0])
    found = Candidates(scores, labels, boxes, np.ones((5, 1), np.float32), np.ones((1, 8, 16), np.float32))
    stub = Stub(found)
    (result,) = SceneFinder(stub, side=64).find([np.zeros((30, 64, 3), np.uint8)], 0.1)  # type: ignore[arg-type]
    assert stub.shapes == [(32, 64, 3)]  # sides are multiples of 16; nothing was resized
    assert result.scores.tolist() == pytest.approx([0.9, 0.2])  # the dog is at the place of a surer cat
    assert result.labels.tolist() == [0, 0]
    assert result.masks.shape == (2, 30, 64)
    assert result.boxes[1].tolist() == [30, 29, 44, 30]  # one row of margin above, and what is below is cut off


def test_weights_with_nan_are_an_error_and_no_empty_picture(model: SceneDetector) -> None:
    for layer in (model.presence, model.distances):
        kept = layer.bias.detach().clone()
        layer.bias.data.fill_(float("nan"))
        with pytest.raises(NumericError, match="NaN"):
            SceneFinder(model, side=32).find([np.zeros((32, 32, 3), np.uint8)], 0.0)
        layer.bias.data.copy_(kept)


def test_masks_are_sums_of_prototypes_in_pixels_of_the_picture() -> None:
    """A ramp along x, doubled: its sign changes in the middle of a canvas that is half as large as the picture."""
    ramp = np.broadcast_to(np.arange(8) - 3.5, (4, 8))
    prototypes = np.stack([ramp, np.zeros((4, 8))])
    canvas = Letterboxed(np.zeros((16, 32, 3), np.uint8), 0.5, 0, 0, (32, 64))
    boxes = np.array([[0, 0, 64, 32], [10, 4, 50, 20]])
    whole, part = masks_of(np.array([[2.0, 5.0], [-1.0, 0.0]]), prototypes, canvas, boxes)
    assert whole[:, 32:].all()
    assert not whole[:, :32].any()
    assert part[4:20, 10:32].all()
    assert part.sum() == 16 * 22

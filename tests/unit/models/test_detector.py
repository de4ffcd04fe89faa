"""`ObjectDetector` opens pictures, and turns what a model finds into objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tallow.errors import ArgumentError, NumericError, ShapeError
from tallow.models import ObjectDetector
from tallow.models.vision.found import Found

pytest.importorskip("PIL.Image", reason="Pillow is not installed")


class Bright:
    """Finds the bright pixels of a picture as one object, and the dark ones as another one of a better score."""

    labels: tuple[str, ...] = ("dark", "bright")

    def __init__(self, *, masks: bool) -> None:
        self.masks = masks
        self.batches: list[int] = []

    def find(self, pictures: Sequence[Any], threshold: float) -> list[Found]:
        self.batches.append(len(pictures))
        return [self._found(each, threshold) for each in pictures]

    def _found(self, picture: Any, threshold: float) -> Found:
        masks = np.stack([picture[..., 0] > 100, picture[..., 0] <= 100])
        scores = np.array([0.25, 0.75])
        boxes = np.array([[0, 0, 1, 1], [2, 3, 4.5, 5]], np.float32)
        kept = scores > threshold
        return Found(scores[kept], np.array([1, 0])[kept], boxes[kept], masks[kept] if self.masks else None)


class Broken(Bright):
    def _found(self, picture: Any, threshold: float) -> Found:
        return Found(np.array([np.nan]), np.array([0]), np.zeros((1, 4)))


PICTURE = np.zeros((6, 7, 3), np.uint8)
PICTURE[:2] = 255


def test_objects_come_for_each_picture_the_best_first() -> None:
    finder = Bright(masks=True)
    detector = ObjectDetector(finder)
    assert detector.labels == ("dark", "bright")
    found = detector.detect([PICTURE, PICTURE, PICTURE], 0.2, batch_size=2)
    assert finder.batches == [2, 1]
    assert len(found) == 3
    dark, bright = found[2]
    assert (dark.label, dark.score, dark.box) == ("dark", 0.75, (2.0, 3.0, 4.5, 5.0))
    assert (bright.label, bright.score, bright.box) == ("bright", 0.25, (0.0, 0.0, 1.0, 1.0))
    assert dark.mask is not None
    assert bright.mask is not None
    np.testing.assert_array_equal(bright.mask, PICTURE[..., 0] > 0)
    np.testing.assert_array_equal(dark.mask, ~bright.mask)


def test_one_picture_is_a_batch_of_one() -> None:
    (found,) = ObjectDetector(Bright(masks=False)).detect(PICTURE)
    assert [(each.label, each.mask) for each in found] == [("dark", None)]
    assert ObjectDetector(Bright(masks=False)).detect([]) == []


def test_bad_input_is_refused() -> None:
    detector = ObjectDetector(Bright(masks=False))
    for options in ({"threshold": 1.5}, {"threshold": float("nan")}, {"batch_size": 0}):
        with pytest.raises(ArgumentError, match="threshold"):
            detector.detect(PICTURE, **options)
    with pytest.raises(ShapeError, match="uint8"):
        detector.detect(PICTURE / 255)
    with pytest.raises(NumericError, match="NaN"):
        ObjectDetector(Broken(masks=False)).detect(PICTURE)

"""Objects in pictures: labels, scores, boxes, and masks where the model has them.

Letters: N objects, Y and X pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, NumericError
from tallow.models.vision.image_processor import Image, is_one, opened
from tallow.vision.detection import Detection


class Found(NamedTuple):
    """The objects of one picture.

    Attributes:
        labels: indices into the labels of the model.
        boxes: left, top, right and bottom edges, in pixels of the picture.

    Shapes:  scores (N,), labels (N,), boxes (N, 4), masks (N, Y, X) of bool with the size of the picture, or None
    """

    scores: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    boxes: npt.NDArray[Any]
    masks: npt.NDArray[np.bool_] | None = None


class Finder(Protocol):
    """A model with what it needs to find objects in pictures.

    Attributes:
        labels: names of the kinds of objects.
    """

    labels: tuple[str, ...]

    def find(self, pictures: Sequence[npt.NDArray[np.uint8]], threshold: float) -> list[Found]:
        """Return the objects of pictures (Y, X, 3) in RGB, of any sizes, with scores above a threshold."""


class ObjectDetector:
    """Finds objects in pictures.

    Args:
        finder: the model.

    Attributes:
        labels: names of the kinds of objects.

    Example:
        detector = ObjectDetector(finder)
        for label, score, box, mask in detector.detect("street.jpg")[0]:
            print(label, score, box)
    """

    def __init__(self, finder: Finder) -> None:
        self.finder = finder

    @property
    def labels(self) -> tuple[str, ...]:
        return self.finder.labels

    def detect(
        self, images: Image | Sequence[Image], threshold: float = 0.5, *, batch_size: int = 8
    ) -> list[list[Detection]]:
        """Return the objects of each picture, those with the best scores first.

        Args:
            images: paths, Pillow images, or arrays (Y, X, 3) of uint8; one picture is a batch of one.
            threshold: of scores, from 0 to 1.
            batch_size: how many pictures to compute at once.

        Raises:  ArgumentError for a threshold and a batch_size out of range; NumericError for scores and boxes that are
                 not finite; ShapeError, ImageError, OSError for pictures that cannot be read
        """
        if not 0 <= threshold <= 1 or batch_size < 1:
            hint = "pass a threshold of 0 to 1, and 1 picture or more for each batch"
            raise ArgumentError(f"threshold={threshold}, batch_size={batch_size}", hint=hint)
        rows: Sequence[Image] = [images] if is_one(images) else images
        found: list[list[Detection]] = []
        for start in range(0, len(rows), batch_size):
            pictures = [np.asarray(opened(image)) for image in rows[start : start + batch_size]]
            found.extend(map(self._detections, self.finder.find(pictures, threshold)))
        return found

    def _detections(self, found: Found) -> list[Detection]:
        if not (np.isfinite(found.scores).all() and np.isfinite(found.boxes).all()):
            raise NumericError("a result holds NaN or infinities", hint="check the weights: tallow inspect --check")
        order = np.argsort(-found.scores, kind="stable")
        masks = [None] * len(order) if found.masks is None else list(found.masks)
        return [
            Detection(self.labels[int(found.labels[i])], float(found.scores[i]), _edges(found.boxes[i]), masks[i])
            for i in order
        ]


def _edges(box: npt.NDArray[Any]) -> tuple[float, float, float, float]:
    left, top, right, bottom = (float(edge) for edge in box)
    return left, top, right, bottom

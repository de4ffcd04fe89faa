"""Things in pictures of any size, found by the small detector of scenes.

Letters: N things found, Y and X pixels of the picture, P prototypes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.models.vision.found import Found, require_finite
from tallow.models.vision.scenes import MASK_STRIDE, SceneDetector
from tallow.vision import batched_nms, letterbox
from tallow.vision.letterbox import Letterboxed

Pixels = npt.NDArray[np.uint8]
STEP = 16  # sides of the detector's input are multiples of it
OVERLAP = 0.5  # of two boxes of one kind, above which the better one stays
OVERLAP_OF_ALL = 0.8  # of two boxes of any kinds
MOST = 100
SIDE = 256


class SceneFinder:
    """A `Finder` for `ObjectDetector`.

    Args:
        model: the detector.
        side: the longest side of a picture on its way into the detector, in pixels.

    Attributes:
        labels: of the kinds of things.
    """

    def __init__(self, model: SceneDetector, side: int = SIDE) -> None:
        self.model = model
        self.labels = model.labels
        self.side = side

    def find(self, pictures: Sequence[Pixels], threshold: float) -> list[Found]:
        """Return what is in each picture, best first.

        Args:
            pictures: RGB, of any sizes.
            threshold: the lowest score.

        Shapes:  (Y, X, 3) each
        Raises:  NumericError for scores and boxes that are not finite
        """
        return [self._find(picture, threshold) for picture in pictures]

    def _find(self, picture: Pixels, threshold: float) -> Found:
        box = self.fitted(picture)
        found = self.model.candidates(box.pixels, threshold)
        require_finite(found.scores, found.boxes)
        kept = batched_nms(found.boxes, found.scores, found.labels, OVERLAP)
        alike = np.zeros(len(kept), np.int64)
        kept = kept[batched_nms(found.boxes[kept], found.scores[kept], alike, OVERLAP_OF_ALL)][:MOST]
        boxes = box.to_picture(found.boxes[kept])
        masks = masks_of(found.coefficients[kept], found.prototypes, box, boxes)
        return Found(found.scores[kept], found.labels[kept], boxes, masks)

    def fitted(self, picture: Pixels) -> Letterboxed:
        """Return a picture on a canvas that the detector takes."""
        height, width = picture.shape[:2]
        scale = self.side / max(height, width)
        return letterbox(picture, (_multiple(height * scale), _multiple(width * scale)))


def masks_of(
    coefficients_NP: npt.NDArray[np.floating[Any]],
    prototypes: npt.NDArray[np.floating[Any]],
    box: Letterboxed,
    boxes_N4: npt.NDArray[np.floating[Any]],
) -> npt.NDArray[np.bool_]:
    """Return the masks (N, Y, X) of things inside their boxes, in pixels of the picture.

    Args:  prototypes: (P, y, x), of the canvas
    """
    height, width = box.size
    masks = np.zeros((len(boxes_N4), height, width), bool)
    for mask, coefficients_P, (left, top, right, bottom) in zip(masks, coefficients_NP, boxes_N4, strict=True):
        x = np.arange(int(left), min(width, int(np.ceil(right))))
        y = np.arange(int(top), min(height, int(np.ceil(bottom))))
        if not (x.size and y.size):
            continue
        # Pixel centres of the picture, in cells of the prototypes.
        at_x = ((x + 0.5) * box.scale + box.left) / MASK_STRIDE - 0.5
        at_y = ((y + 0.5) * box.scale + box.top) / MASK_STRIDE - 0.5
        logits = np.tensordot(coefficients_P, prototypes, 1)
        mask[y[0] : y[-1] + 1, x[0] : x[-1] + 1] = _sampled(logits, at_y, at_x) > 0
    return masks


def _sampled(
    values: npt.NDArray[np.floating[Any]], at_y: npt.NDArray[np.floating[Any]], at_x: npt.NDArray[np.floating[Any]]
) -> npt.NDArray[np.floating[Any]]:
    """Interpolate a grid (y, x) linearly, first along x, then along y."""
    left, right, share = _neighbours(at_x, values.shape[1])
    rows = values[:, left] * (1 - share) + values[:, right] * share
    above, below, share = _neighbours(at_y, values.shape[0])
    return rows[above] * (1 - share[:, None]) + rows[below] * share[:, None]


def _neighbours(at: npt.NDArray[np.floating[Any]], length: int) -> tuple[Any, Any, Any]:
    at = np.clip(at, 0, length - 1)
    low = np.minimum(at.astype(np.int64), length - 1)
    return low, np.minimum(low + 1, length - 1), at - low


def _multiple(length: float) -> int:
    """Return the next multiple of the step, so that a picture whose longest side fits is not resized."""
    return max(1, math.ceil(round(length, 6) / STEP)) * STEP

"""Objects in pictures: labels, scores, boxes, and masks where the model has them.

Letters: N objects, Y and X pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError
from tallow.models.vision.finders import load_finder
from tallow.models.vision.found import Finder, Found, require_finite
from tallow.models.vision.image_processor import Image, is_one, opened
from tallow.vision.detection import Detection


class ObjectDetector:
    """Finds objects in pictures.

    Args:
        finder: the model.

    Attributes:
        labels: names of the kinds of objects.

    Example:
        detector = ObjectDetector.from_pretrained("facebook/detr-resnet-50")
        for label, score, box, mask in detector.detect("street.jpg")[0]:
            print(label, score, box)
    """

    def __init__(self, finder: Finder) -> None:
        self.finder = finder

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        device: Any = None,
        quant: str | None = None,
        revision: str | None = None,
        token: str | None = None,
    ) -> ObjectDetector:
        """Load a folder, a repository of the Hub, or a file of a YOLO model.

        Args:
            name: a folder of a DETR, or `owner/repository`; or a file such as yolov8n.pt.
            device: of the model; None means the default one.
            quant: quantise the matrices of linear layers, as `PretrainedModel.quantize`; a YOLO model has none.
            revision, token: of the Hub repository, as in `tallow.hub.local_folder`.

        Raises:  CheckpointError for a model of another kind, and damaged files; ArgumentError for quant with a YOLO
                 model; HubError, MissingPackageError, OSError
        """
        return cls(load_finder(name, device=device, quant=quant, revision=revision, token=token))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the kinds of objects."""
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
        require_finite(found.scores, found.boxes)
        order = np.argsort(-found.scores, kind="stable")
        masks = [None] * len(order) if found.masks is None else list(found.masks)
        return [
            Detection(self.labels[int(found.labels[i])], float(found.scores[i]), _edges(found.boxes[i]), masks[i])
            for i in order
        ]


def _edges(box: npt.NDArray[Any]) -> tuple[float, float, float, float]:
    left, top, right, bottom = (float(edge) for edge in box)
    return left, top, right, bottom

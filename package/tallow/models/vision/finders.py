"""Models with what they need to find objects in pictures of any size: DETR, and YOLOv8 and YOLO11.

Letters: N objects, Y and X pixels, P cells, L labels, K coefficients of masks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.creation import zeros
from tallow.core.tensor import wrap
from tallow.errors import ArgumentError, CheckpointError, TallowError
from tallow.hub import local_folder
from tallow.io.images import pillow
from tallow.models import loading
from tallow.models.auto import model_class
from tallow.models.vision.detr import DetrForObjectDetection
from tallow.models.vision.found import Finder, Found, require_finite
from tallow.models.vision.image_processor import ImageProcessor
from tallow.models.vision.postprocessing import Detection as DetrResults
from tallow.models.vision.yolo import Yolo
from tallow.models.vision.yolo_file import read_model
from tallow.tape.modes import no_grad
from tallow.vision import batched_nms, letterbox
from tallow.vision.letterbox import BILINEAR, Letterboxed
from tallow.vision.suppression import by_score

SIDE = 640  # of the longer side of pictures for YOLO
OVERLAP = 0.7  # of two boxes of a label that both stay
MOST = 300  # objects of a picture
CANDIDATES = 30_000  # boxes that are compared


class DetrFinder(Finder):
    """A DETR and its image processor."""

    def __init__(self, processor: ImageProcessor, model: DetrForObjectDetection) -> None:
        self.processor, self.model = processor, model
        self.labels: tuple[str, ...] = model.config.labels

    def find(self, pictures: Sequence[npt.NDArray[np.uint8]], threshold: float) -> list[Found]:
        pixels, mask = self.processor.batch(list(pictures))
        device = next(self.model.parameters()).device
        with no_grad():
            output = self.model(pixels.to(device), None if mask is None else mask.to(device))
            require_finite(output.logits.float().cpu().numpy())  # a comparison would drop NaN
            sizes = [each.shape[:2] for each in pictures]
            rows = DetrResults().post_process_object_detection(output, threshold, sizes)
        arrays = [{name: value.float().cpu().numpy() for name, value in row.items()} for row in rows]
        return [Found(row["scores"], row["labels"].astype(np.int64), row["boxes"]) for row in arrays]


class YoloFinder(Finder):
    """A YOLO model; pictures are scaled to a longer side of `side` pixels."""

    def __init__(self, model: Yolo, side: int = SIDE) -> None:
        self.model, self.side = model, side
        self.labels = model.labels

    def find(self, pictures: Sequence[npt.NDArray[np.uint8]], threshold: float) -> list[Found]:
        return [self._found(each, threshold) for each in pictures]

    def _found(self, picture: npt.NDArray[np.uint8], threshold: float) -> Found:
        boxed = letterbox(picture, self._canvas(picture.shape[0], picture.shape[1]))
        pixels = np.moveaxis(boxed.pixels, -1, 0)[None].astype(np.float32) / np.float32(255)
        device = next(self.model.parameters()).device
        with no_grad():
            output = self.model(wrap(devices.move(pixels, device)))
        boxes, scores = (each[0].cpu().numpy() for each in (output.boxes, output.scores))
        labels, best = scores.argmax(-1), scores.max(-1)
        order = np.flatnonzero(~(best <= threshold))  # NaN stays, and is reported
        order = order[by_score(best[order])][:CANDIDATES]
        kept = order[batched_nms(boxes[order], best[order], labels[order], OVERLAP)][:MOST]
        require_finite(best[kept], boxes[kept])
        masks, own_boxes = None, boxed.to_picture(boxes[kept])
        if output.coefficients is not None and output.prototypes is not None:
            weights, maps = (each[0].cpu().numpy() for each in (output.coefficients, output.prototypes))
            masks = _masks(weights[kept], maps, boxed, own_boxes)
        return Found(best[kept], labels[kept], own_boxes, masks)

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        """Return the smallest canvas for a picture, of sides that are multiples of the model's stride."""
        scale, stride = self.side / max(height, width), self.model.stride
        rows, columns = (max(1, math.ceil(round(side * scale) / stride)) * stride for side in (height, width))
        return rows, columns


def _masks(
    weights_NK: npt.NDArray[Any], maps_KYX: npt.NDArray[Any], boxed: Letterboxed, boxes_N4: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Return masks (N, Y, X) of the size of the picture, each inside of its box."""
    height, width = boxed.size
    found = np.zeros((len(weights_NK), height, width), bool)
    scale = maps_KYX.shape[2] / boxed.pixels.shape[1]
    x0, y0, x1, y1 = (edge * scale for edge in boxed.inner)
    at_x, at_y = (
        np.clip(np.linspace(low, high, count + 1), 0, size)  # edges of the picture's pixels in the map
        for low, high, count, size in ((x0, x1, width, maps_KYX.shape[2]), (y0, y1, height, maps_KYX.shape[1]))
    )
    logits_NYX = np.tensordot(weights_NK, maps_KYX, 1).astype(np.float32)
    for mask, logits, box in zip(found, logits_NYX, boxes_N4, strict=True):
        left, top = (math.floor(edge) for edge in box[:2])
        right, bottom = (math.ceil(edge) for edge in box[2:])
        if left < right and top < bottom:  # only the box is resized: a photo has far more pixels
            edges = at_x[left], at_y[top], at_x[right], at_y[bottom]
            size = right - left, bottom - top
            part = pillow("YoloFinder").fromarray(logits).resize(size, BILINEAR, box=tuple(map(float, edges)))
            mask[top:bottom, left:right] = np.asarray(part) > 0
    return found


def _yolo(path: Path) -> Yolo:
    """Return the model of a file, after it has seen a small picture.  Raises: CheckpointError"""
    part = read_model(path)
    try:
        model = Yolo(part)
        with no_grad():
            scores = model(zeros((1, 3, model.stride, model.stride))).scores
        if scores.shape[-1] > len(model.labels):
            raise ValueError(f"{scores.shape[-1]} scores of {len(model.labels)} labels")
        return model
    except CheckpointError:
        raise
    except (TallowError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A file has attributes of any type, and modules in any order.
        raise CheckpointError(
            f"{path}: its modules do not fit: {error}", hint="pass a YOLOv8 or YOLO11 file"
        ) from error


def load_finder(name: str | Path, *, device: Any, quant: str | None, revision: str | None, token: str | None) -> Finder:
    """Return the model of a folder, a repository or a file.  Raises: as `ObjectDetector.from_pretrained`"""
    path = Path(name).expanduser()
    if path.is_file() and path.suffix == ".pt":
        if quant is not None:
            raise ArgumentError("quant of a YOLO model, which has no linear layers", hint="leave out quant")
        return YoloFinder(_yolo(path).to(devices.chosen(device)))
    folder = local_folder(name, revision=revision, token=token)
    kind = model_class(folder)
    if not issubclass(kind, DetrForObjectDetection):
        raise CheckpointError(f"{folder}: a {kind.__name__} finds no objects", hint="choose a DETR, or a YOLO file")
    model = loading.read(kind, folder, None, device, quant, False)
    return DetrFinder(ImageProcessor.from_pretrained(folder), model)

"""A label for each pixel of a picture.

Letters: L labels, Y and X pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallow.errors import CheckpointError
from tallow.models import loading
from tallow.models.auto import model_class
from tallow.models.vision.found import require_finite
from tallow.models.vision.image_processor import Image, ImageProcessor, is_one, opened
from tallow.models.vision.postprocessing import labelled_pixels
from tallow.models.vision.segformer import SegformerForSemanticSegmentation
from tallow.tape.modes import no_grad


class ImageSegmenter(loading.FromPretrained):
    """Labels the pixels of pictures.

    Args:
        processor: prepares the pictures.
        model: a SegFormer for labels of pixels.

    Attributes:
        labels: names of the labels.

    Example:
        segmenter = ImageSegmenter.from_pretrained("nvidia/segformer-b0-finetuned-ade-512-512")
        (numbers,) = segmenter.segment("street.jpg")
        segmenter.labels[numbers[100, 200]]
    """

    def __init__(self, processor: ImageProcessor, model: SegformerForSemanticSegmentation) -> None:
        self.processor, self.model = processor, model
        self.labels: tuple[str, ...] = model.config.labels

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        kind = model_class(path)
        if not issubclass(kind, SegformerForSemanticSegmentation):
            raise CheckpointError(f"{path}: a {kind.__name__} labels no pixels", hint="choose a SegFormer that does")
        processor = ImageProcessor.from_pretrained(path)
        return cls(processor, loading.read(kind, path, dtype, device, quant, strict))

    def segment(self, images: Image | Sequence[Image]) -> list[npt.NDArray[np.int64]]:
        """Return the labels of each picture, an array (Y, X) of its size with indices into `labels`.

        Args:    images: as for `ImageProcessor`; of any sizes, computed one after the other
        Raises:  NumericError for logits that are not finite; ShapeError, ImageError, OSError for pictures that cannot
                 be read
        """
        return [self._numbers(opened(image)) for image in ([images] if is_one(images) else images)]

    def _numbers(self, picture: Any) -> npt.NDArray[np.int64]:
        device = next(self.model.parameters()).device
        with no_grad():
            logits_1LYX = self.model(self.processor(picture).to(device)).float()
            require_finite(logits_1LYX.cpu().numpy())  # the largest of NaN is no label
            (numbers,) = labelled_pixels(logits_1LYX, [(picture.height, picture.width)])
        return numbers.cpu().numpy()

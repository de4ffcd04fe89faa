"""Depths of the pixels of pictures.

Letters: Y and X pixels.
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
from tallow.models.vision.depth_anything import DepthAnythingForDepthEstimation
from tallow.models.vision.found import require_finite
from tallow.models.vision.image_processor import Image, ImageProcessor, is_one, opened
from tallow.models.vision.postprocessing import resized
from tallow.tape.modes import no_grad


class DepthEstimator(loading.FromPretrained):
    """Tells how far away each pixel of a picture is.

    Args:
        processor: prepares the pictures.
        model: a Depth Anything.

    Attributes:
        is_metric: whether depths are metres; otherwise larger values are nearer, in no unit.

    Example:
        estimator = DepthEstimator.from_pretrained("depth-anything/Depth-Anything-V2-Small-hf")
        (depth,) = estimator.estimate("street.jpg")
    """

    def __init__(self, processor: ImageProcessor, model: DepthAnythingForDepthEstimation) -> None:
        self.processor, self.model = processor, model
        self.is_metric = model.config.depth_estimation_type == "metric"

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        kind = model_class(path)
        if not issubclass(kind, DepthAnythingForDepthEstimation):
            raise CheckpointError(f"{path}: a {kind.__name__} tells no depths", hint="choose a Depth Anything")
        processor = ImageProcessor.from_pretrained(path)
        return cls(processor, loading.read(kind, path, dtype, device, quant, strict))

    def estimate(self, images: Image | Sequence[Image]) -> list[npt.NDArray[np.float32]]:
        """Return the depths of each picture, an array (Y, X) of its size.

        Args:    images: as for `ImageProcessor`; of any sizes, computed one after the other
        Raises:  NumericError for depths that are not finite; ShapeError, ImageError, OSError for pictures that cannot
                 be read
        """
        return [self._depth(opened(image)) for image in ([images] if is_one(images) else images)]

    def _depth(self, picture: Any) -> npt.NDArray[np.float32]:
        device = next(self.model.parameters()).device
        with no_grad():
            depths_1YX = self.model(self.processor(picture).to(device)).float()
            depth_YX = resized(depths_1YX, (picture.height, picture.width), "bicubic")[0].cpu().numpy()
        require_finite(depth_YX)
        return depth_YX

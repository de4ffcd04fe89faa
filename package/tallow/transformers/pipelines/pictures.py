"""Objects, segments and depths of pictures, by models in ONNX files.

Source:  the pipelines of transformers
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError
from tallow.io.images import pillow
from tallow.transformers.pipelines.images import ImagePipeline, one_of
from tallow.transformers.pipelines.inputs import picture_of

TASKS = ("panoptic", "instance", "semantic")  # in the order in which one is chosen


class SizedPipeline(ImagePipeline):
    """The base of pipelines whose results have the size of the picture."""

    def __call__(self, inputs: Any = None, *, images: Any = None, **arguments: Any) -> Any:
        """Return the result of a picture, or a list for several.

        Raises:  ArgumentError for no picture; as `Pipeline`
        """
        return super().__call__(one_of(inputs, images), **arguments)

    def sized(self, image: Any, timeout: float | None) -> Any:
        """Return the model's input for a picture, and the height and width of the picture."""
        image = picture_of(image, timeout)
        return {**self.pixels(image, timeout), "target_size": [(image.height, image.width)]}


class ObjectDetectionPipeline(SizedPipeline):
    """Finds objects: [{"score", "label", "box": {"xmin", "ymin", "xmax", "ymax"}}], in pixels.

    Args of the constructor and of calls:
        threshold: of scores; 0.5 by default.
        timeout: seconds to wait for a picture of the web.
    """

    def preprocess(self, image: Any, timeout: float | None = None) -> Any:
        return self.sized(image, timeout)

    def postprocess(self, model_outputs: Any, threshold: float = 0.5) -> Any:
        sizes = tl.tensor(model_outputs["target_size"])
        (found,) = self.image_processor.post_process_object_detection(model_outputs, threshold, sizes)
        names = self.model.config.id2label
        rows = zip(found["scores"].tolist(), found["labels"].tolist(), found["boxes"], strict=True)
        return [{"score": score, "label": names[label], "box": _box(box)} for score, label, box in rows]


def _box(edges: Any) -> dict[str, int]:
    return dict(zip(("xmin", "ymin", "xmax", "ymax"), edges.int().tolist(), strict=True))


class ImageSegmentationPipeline(SizedPipeline):
    """Finds segments: [{"score", "label", "mask"}], with a mask of Pillow, 255 where the segment is.

    Args of the constructor and of calls:
        subtask: "panoptic", "instance" or "semantic"; by default the first of these that the model has.
        threshold: of scores; 0.9 by default.
        mask_threshold: of the chance that a pixel is of a mask; 0.5 by default.
        overlap_mask_area_threshold: the least part of a mask that other masks leave of a segment; 0.5 by default.
        timeout: seconds to wait for a picture of the web.
    """

    def preprocess(self, image: Any, timeout: float | None = None) -> Any:
        return self.sized(image, timeout)

    def postprocess(
        self,
        model_outputs: Any,
        subtask: str | None = None,
        threshold: float = 0.9,
        mask_threshold: float = 0.5,
        overlap_mask_area_threshold: float = 0.5,
    ) -> Any:
        task = self._task(subtask)
        read = getattr(self.image_processor, f"post_process_{task}_segmentation")
        sizes, names = model_outputs["target_size"], self.model.config.id2label
        if task == "semantic":
            labels = read(model_outputs, target_sizes=sizes)[0].numpy()
            return [
                {"score": None, "label": names[int(each)], "mask": _mask(labels == each)} for each in np.unique(labels)
            ]
        limits = {"mask_threshold": mask_threshold, "overlap_mask_area_threshold": overlap_mask_area_threshold}
        (found,) = read(model_outputs, threshold=threshold, target_sizes=sizes, **limits)
        places = found["segmentation"].numpy()
        return [
            {"score": each["score"], "label": names[each["label_id"]], "mask": _mask(places == each["id"])}
            for each in found["segments_info"]
        ]

    def _task(self, subtask: str | None) -> str:
        """Return which segments to find.  Raises: ArgumentError for those that the model does not have"""
        own = [task for task in TASKS if hasattr(self.image_processor, f"post_process_{task}_segmentation")]
        if not own or subtask not in (None, *own):
            kind = type(self.image_processor).__name__
            raise ArgumentError(
                f"subtask={subtask!r:.80}: {kind} does not read it from outputs",
                hint=f"it has {', '.join(own) or 'no segments'}",
            )
        return subtask or own[0]


def _mask(inside: Any) -> Any:
    return pillow("image-segmentation").fromarray((inside * 255).astype(np.uint8))


class DepthEstimationPipeline(SizedPipeline):
    """Estimates depths: {"predicted_depth", "depth"}, a tensor (Y, X) and a picture, 255 for the largest value.

    Args of the constructor and of calls:
        timeout: seconds to wait for a picture of the web.
        parameters: {"timeout": ...}, as version 4 names it.
    """

    def preprocess(self, image: Any, timeout: float | None = None, parameters: dict[str, Any] | None = None) -> Any:
        return self.sized(image, (parameters or {}).get("timeout", timeout))

    def postprocess(self, model_outputs: Any) -> Any:
        sizes = model_outputs["target_size"]
        (found,) = self.image_processor.post_process_depth_estimation(model_outputs, sizes)
        depth = found["predicted_depth"].numpy()
        levels = (depth - depth.min()) / max(float(depth.max() - depth.min()), np.finfo(np.float32).tiny)
        picture = pillow("depth-estimation").fromarray((levels * 255).astype("uint8"))
        return {"predicted_depth": found["predicted_depth"], "depth": picture}

"""Boxes, masks and depths in the pixels of pictures, from the outputs of models.

Letters: B pictures, Q queries, N labels, Y and X pixels.

Source:  the methods `post_process_...` of transformers' image processors
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.creation import arange, full, zeros
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor
from tallow.dtypes import int32
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.ops.joining import stack

where = PUBLIC["tl"]["where"]
Sizes = Sequence[Sequence[int]] | Tensor | None
NEARLY_ZERO = 1e-6  # keeps an empty mask from dividing by zero


def sizes_of(target_sizes: Sizes, count: int) -> list[tuple[int, int] | None]:
    """Return the height and width for each picture of a batch, None where there are none.

    Raises:  ArgumentError for another number of sizes than of pictures
    """
    if target_sizes is None:
        return [None] * count
    if len(target_sizes) != count:
        raise ArgumentError(f"{len(target_sizes)} sizes for {count} pictures", hint="pass a height and width for each")
    return [(int(height), int(width)) for height, width in target_sizes]


def corners(boxes_BQ4: Tensor, target_sizes: Sizes) -> Tensor:
    """Return boxes (B, Q, 4) as left, top, right and bottom, in pixels where there are sizes.

    Args:    boxes_BQ4: centre, width and height, as parts of the picture
    """
    x, y, width, height = boxes_BQ4.unbind(-1)
    edges = apply(stack, [x - 0.5 * width, y - 0.5 * height, x + 0.5 * width, y + 0.5 * height], -1)
    sizes = sizes_of(target_sizes, boxes_BQ4.shape[0])
    scales = [[1.0] * 4 if size is None else [size[1], size[0]] * 2 for size in sizes]
    return edges * edges.new_tensor(scales)[:, None]


def above(threshold: float, scores: Tensor, labels: Tensor, boxes: Tensor) -> list[dict[str, Tensor]]:
    """Return the boxes of each picture with scores above a threshold."""
    found = []
    for score, label, box in zip(scores, labels, boxes, strict=True):
        kept = score > threshold
        found.append({"scores": score[kept], "labels": label[kept], "boxes": box[kept]})
    return found


class Detection:
    """Boxes of objects, where each query has one label or none, the last one."""

    def post_process_object_detection(
        self, outputs: Any, threshold: float = 0.5, target_sizes: Sizes = None
    ) -> list[dict[str, Tensor]]:
        """Return the scores, labels and boxes of each picture.

        Args:
            outputs: `logits` (B, Q, N + 1) and `pred_boxes` (B, Q, 4).
            threshold: of scores.
            target_sizes: the height and width of each picture; None leaves boxes as parts of the picture.

        Shapes:  boxes (objects, 4): left, top, right, bottom
        Raises:  ArgumentError
        """
        scores, labels = outputs.logits.softmax(-1)[..., :-1].max(-1)
        return above(threshold, scores, labels, corners(outputs.pred_boxes, target_sizes))


class FocalDetection:
    """Boxes of objects, where each query may have several labels."""

    def post_process_object_detection(
        self, outputs: Any, threshold: float = 0.5, target_sizes: Sizes = None, use_focal_loss: bool = True
    ) -> list[dict[str, Tensor]]:
        """Return the scores, labels and boxes of each picture, the best first.

        Args:
            use_focal_loss: False for a model whose queries have one label or none.
            others: as `Detection.post_process_object_detection`; `logits` are (B, Q, N).

        Raises:  ArgumentError
        """
        if not use_focal_loss:
            return Detection().post_process_object_detection(outputs, threshold, target_sizes)
        queries, labels = outputs.logits.shape[1:]
        scores, index = outputs.logits.sigmoid().flatten(1).topk(queries, -1)
        boxes = corners(outputs.pred_boxes, target_sizes)
        places = (index // labels)[..., None].expand(-1, -1, 4)
        return above(threshold, scores, index % labels, boxes.gather(1, places))


class Semantic:
    """One label for each pixel."""

    def post_process_semantic_segmentation(self, outputs: Any, target_sizes: Sizes = None) -> list[Tensor]:
        """Return the labels (Y, X) of the pixels of each picture.

        Args:
            outputs: `logits` (B, N, Y, X).
            target_sizes: the height and width of each picture; None leaves those of the model.

        Raises:  ArgumentError
        """
        return labelled_pixels(outputs.logits, target_sizes)


def labelled_pixels(logits_BNYX: Tensor, target_sizes: Sizes) -> list[Tensor]:
    """Return the best label (Y, X) of each pixel of each picture."""
    sizes = sizes_of(target_sizes, logits_BNYX.shape[0])
    return [resized(each, size).argmax(0) for each, size in zip(logits_BNYX, sizes, strict=True)]


def resized(maps_NYX: Tensor, size: tuple[int, int] | None, mode: str = "bilinear") -> Tensor:
    """Return maps with the height and width of a picture; None leaves them."""
    if size is None:
        return maps_NYX
    options = {} if mode == "nearest" else {"align_corners": False}
    return F.interpolate(maps_NYX[None], size=size, mode=mode, **options)[0]


def nothing(maps_NYX: Tensor, size: tuple[int, int] | None) -> Tensor:
    """Return a map of no segments, -1, of the height and width of a picture; None means those of other maps."""
    return full(size or tuple(maps_NYX.shape[1:]), -1.0, device=maps_NYX.device)


class Masks:
    """A mask and a label for each query: DETR's `logits` and `pred_masks`."""

    def queries(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Return the logits of labels (B, Q, N + 1) and of masks (B, Q, Y, X)."""
        return outputs.logits, outputs.pred_masks

    def post_process_semantic_segmentation(self, outputs: Any, target_sizes: Sizes = None) -> list[Tensor]:
        """Return the labels (Y, X) of the pixels of each picture.  Args, raises: as `Semantic`"""
        logits, masks = self.queries(outputs)
        chances_BNQ = logits.softmax(-1)[..., :-1].mT
        batch, _, height, width = masks.shape
        maps = (chances_BNQ @ masks.sigmoid().flatten(2)).reshape(batch, -1, height, width)
        return labelled_pixels(maps, target_sizes)

    def post_process_panoptic_segmentation(
        self,
        outputs: Any,
        threshold: float = 0.5,
        mask_threshold: float = 0.5,
        overlap_mask_area_threshold: float = 0.8,
        label_ids_to_fuse: set[int] | None = None,
        target_sizes: Sizes = None,
    ) -> list[dict[str, Any]]:
        """Return for each picture which segment each pixel is of, and what the segments are.

        Args:
            threshold: of scores of queries.
            mask_threshold: of the chance that a pixel is of a mask.
            overlap_mask_area_threshold: the least part of a mask that other masks leave of a segment.
            label_ids_to_fuse: labels whose segments are one.
            target_sizes: the height and width of each picture; None leaves those of the model.

        Returns: {"segmentation": (Y, X), "segments_info": [{"id", "label_id", "was_fused", "score"}]}
        Raises:  ArgumentError
        """
        logits, masks = self.queries(outputs)
        scores, labels = logits.softmax(-1).max(-1)
        sizes = sizes_of(target_sizes, masks.shape[0])
        found = []
        for mask, score, label, size in zip(masks.sigmoid(), scores, labels, sizes, strict=True):
            kept = (label != logits.shape[-1] - 1) & (score > threshold)
            if not kept.any():
                found.append({"segmentation": nothing(mask, size), "segments_info": []})
                continue
            limits = (mask_threshold, overlap_mask_area_threshold)
            fused = label_ids_to_fuse or set()
            found.append(segments_of(resized(mask[kept], size), score[kept], label[kept], limits, fused))
        return found


class DetrMasks(Masks):
    """DETR's masks, whose instances are segments of which none are one."""

    def post_process_instance_segmentation(
        self,
        outputs: Any,
        threshold: float = 0.5,
        mask_threshold: float = 0.5,
        overlap_mask_area_threshold: float = 0.8,
        target_sizes: Sizes = None,
    ) -> list[dict[str, Any]]:
        """Return the segments of each picture.  Args, returns, raises: as `post_process_panoptic_segmentation`"""
        limits = threshold, mask_threshold, overlap_mask_area_threshold
        return self.post_process_panoptic_segmentation(outputs, *limits, None, target_sizes)


class FormerMasks(Masks):
    """MaskFormer's `class_queries_logits` and `masks_queries_logits`.

    Attributes:
        mask_size: the height and width to which masks are scaled first; None leaves them.
    """

    mask_size: ClassVar[tuple[int, int] | None] = None

    def queries(self, outputs: Any) -> tuple[Tensor, Tensor]:
        masks = outputs.masks_queries_logits
        if self.mask_size is not None:
            masks = F.interpolate(masks, size=self.mask_size, mode="bilinear", align_corners=False)
        return outputs.class_queries_logits, masks

    def post_process_instance_segmentation(
        self,
        outputs: Any,
        threshold: float = 0.5,
        mask_threshold: float = 0.5,
        overlap_mask_area_threshold: float = 0.8,
        target_sizes: Sizes = None,
        return_binary_maps: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the instances of each picture, the best first; a pixel of several is of the last of them.

        Args:
            mask_threshold, overlap_mask_area_threshold: have no effect, as in transformers.
            return_binary_maps: return a mask (instances, Y, X) for each, in place of the map of all.
            others: as `post_process_panoptic_segmentation`.

        Raises:  ArgumentError
        """
        logits, masks = self.queries(outputs)
        sizes = sizes_of(target_sizes, masks.shape[0])
        count, labels = logits.shape[1], logits.shape[2] - 1
        found = []
        for mask, chances, size in zip(masks, logits.softmax(-1)[..., :-1], sizes, strict=True):
            scores, index = chances.flatten().topk(count)
            mask = mask[index // labels]
            pixels = (mask > 0).float()
            inside = (mask.sigmoid() * pixels).flatten(1).sum(1) / (pixels.flatten(1).sum(1) + NEARLY_ZERO)
            pixels = resized(pixels, size, "nearest")
            entries: list[dict[str, Any]] = []
            kept: list[Tensor] = []
            segmentation = nothing(pixels, None)
            for own, score, label in zip(pixels, (scores * inside).tolist(), (index % labels).tolist(), strict=True):
                if score >= threshold and own.any():
                    segmentation = where(own == 1, float(len(kept)), segmentation)
                    entries.append(_entry(len(kept), label, False, score))
                    kept.append(own)
            if return_binary_maps and kept:
                segmentation = apply(stack, kept)
            found.append({"segmentation": segmentation, "segments_info": entries})
        return found


class ScaledFormerMasks(FormerMasks):
    """Mask2Former's masks, which are scaled to the size that its models see."""

    mask_size = (384, 384)


class Depth:
    """The distance of each pixel."""

    def post_process_depth_estimation(self, outputs: Any, target_sizes: Sizes = None) -> list[dict[str, Tensor]]:
        """Return the depths (Y, X) of each picture.

        Args:
            outputs: `predicted_depth` (B, Y, X).
            target_sizes: the height and width of each picture; None leaves those of the model.

        Raises:  ArgumentError
        """
        depths = outputs.predicted_depth
        sizes = sizes_of(target_sizes, depths.shape[0])
        return [
            {"predicted_depth": resized(each[None], size, "bicubic")[0]}
            for each, size in zip(depths, sizes, strict=True)
        ]


class DepthAndLabels(Depth, Semantic):
    """The distance or the label of each pixel."""


class BoxesAndMasks(Detection, DetrMasks):
    """Boxes, or masks, of objects."""


# For each kind of image processor.
KINDS: dict[str, type] = {
    "DPT": DepthAndLabels,
    "Detr": BoxesAndMasks,
    "Mask2Former": ScaledFormerMasks,
    "MaskFormer": FormerMasks,
    "RTDetr": FocalDetection,
    "Segformer": Semantic,
    "Yolos": Detection,
}


def segments_of(
    chances_QYX: Tensor, scores_Q: Tensor, labels_Q: Tensor, limits: tuple[float, float], fused: set[int]
) -> dict[str, Any]:
    """Return which segment each pixel is of, and what the segments are.

    Args:    limits: of the chance of a pixel, and of the part of a mask that is left
    """
    threshold, least = limits
    weighted_QYX = chances_QYX * scores_Q.reshape(-1, 1, 1)
    best_YX = weighted_QYX.argmax(0)
    own_QYX = best_YX == arange(scores_Q.shape[0], device=best_YX.device).reshape(-1, 1, 1)
    left, before = own_QYX.flatten(1).sum(1).tolist(), (weighted_QYX >= threshold).flatten(1).sum(1).tolist()
    segmentation = zeros(tuple(best_YX.shape), dtype=int32, device=best_YX.device)
    entries: list[dict[str, Any]] = []
    former: dict[int, int] = {}
    number = 0
    for i, (score, label) in enumerate(zip(scores_Q.tolist(), labels_Q.tolist(), strict=True)):
        if not left[i] or not before[i] or not left[i] / before[i] > least:
            continue
        number = former[label] if label in former else number + 1
        segmentation = segmentation.masked_fill(own_QYX[i], number)
        entries.append(_entry(number, label, label in fused, score))
        if label in fused:
            former[label] = number
    return {"segmentation": segmentation, "segments_info": entries}


def _entry(number: int, label: int, was_fused: bool, score: float) -> dict[str, Any]:
    return {"id": number, "label_id": label, "was_fused": was_fused, "score": round(score, 6)}

"""Non-maximum suppression: of boxes that overlap much, the one with the best score stays.

Letters: N boxes, M of them that stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ShapeError
from tallow.vision.boxes import Boxes, floating, overlap

Indices = npt.NDArray[np.int64]


def nms(boxes: Any, scores: Any, iou_threshold: float) -> Indices:
    """Return the indices of boxes, by decreasing score, without those that overlap a box before them too much.

    Args:
        boxes: left, top, right, bottom.
        iou_threshold: the largest intersection over union of two boxes that both stay.

    Shapes:  (N, 4), (N,) -> (M,)
    Raises:  ShapeError
    Source:  torchvision.ops.nms. As there, overlaps have the dtype of the boxes, and the threshold is a float64: 0.6 in
             float32 is above it
    """
    boxes, scores = _checked(boxes, scores)
    limit = np.float64(iou_threshold)
    order = by_score(scores)
    ordered = np.asfortranarray(boxes[order])  # edges lie together
    stays = np.ones(len(order), bool)
    for i in range(len(order)):
        if stays[i]:
            stays[i + 1 :] &= ~(overlap(ordered[i], ordered[i + 1 :]) > limit)
    return order[stays]


def batched_nms(boxes: Any, scores: Any, labels: Any, iou_threshold: float) -> Indices:
    """Return the indices of boxes as `nms`, where only boxes of one label exclude each other.

    Args:    labels: an integer for each box; the others as `nms`
    Shapes:  (N, 4), (N,), (N,) -> (M,)
    Raises:  ShapeError
    Source:  torchvision.ops.batched_nms
    """
    boxes, scores = _checked(boxes, scores)
    labels = np.asarray(labels)
    if labels.shape != (len(boxes),):
        raise ShapeError(f"labels {labels.shape} of boxes {boxes.shape}; expected one for each box")
    groups = [np.flatnonzero(labels == label) for label in sorted(set(labels.tolist()))]  # np.unique imports numpy.ma
    kept = [own[nms(boxes[own], scores[own], iou_threshold)] for own in groups]
    indices = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
    return indices[by_score(scores[indices])]


def by_score(scores: npt.NDArray[Any]) -> Indices:
    """Return the indices that sort scores (N,) from the best one, equal ones in their order; NaN is first, as in
    PyTorch.
    """
    return (len(scores) - 1 - np.argsort(scores[::-1], kind="stable")[::-1]).astype(np.int64)


def _checked(boxes: Any, scores: Any) -> tuple[Boxes, npt.NDArray[Any]]:
    boxes, scores = floating(boxes), np.asarray(scores)
    if boxes.ndim != 2 or scores.shape != (len(boxes),):
        raise ShapeError(f"scores {scores.shape} of boxes {boxes.shape}; expected (N, 4), and one for each box")
    return boxes, scores

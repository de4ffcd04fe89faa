"""Non-maximum suppression: of boxes that overlap much, the one with the best score stays.

Letters: N boxes, M of them that stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ShapeError
from tallow.vision.boxes import floating, overlap

Indices = npt.NDArray[np.int64]


def nms(boxes: Any, scores: Any, iou_threshold: float) -> Indices:
    """Return the indices of boxes, by decreasing score, without those that overlap a box before them too much.

    Args:
        boxes: left, top, right, bottom.
        iou_threshold: the largest intersection over union of two boxes that both stay.

    Shapes:  (N, 4), (N,) -> (M,)
    Raises:  ShapeError for another number of scores than of boxes
    Source:  torchvision.ops.nms. As there, overlaps have the dtype of the boxes, and the threshold is a float64: 0.6 in
             float32 is above it
    """
    boxes, scores = floating(boxes), np.asarray(scores)
    if scores.shape != (len(boxes),):
        raise ShapeError(f"scores {scores.shape} of boxes {boxes.shape}; expected one for each box")
    limit = np.float64(iou_threshold)
    order = np.argsort(-scores, kind="stable")
    kept = []
    while order.size:
        first, order = order[0], order[1:]
        kept.append(int(first))
        order = order[~(overlap(boxes[first], boxes[order]) > limit)]
    return np.array(kept, np.int64)


def batched_nms(boxes: Any, scores: Any, labels: Any, iou_threshold: float) -> Indices:
    """Return the indices of boxes as `nms`, where only boxes of one label exclude each other.

    Args:    labels: an integer for each box; the others as `nms`
    Shapes:  (N, 4), (N,), (N,) -> (M,)
    Raises:  ShapeError
    Source:  torchvision.ops.batched_nms
    """
    boxes, scores, labels = floating(boxes), np.asarray(scores), np.asarray(labels)
    if labels.shape != (len(boxes),):
        raise ShapeError(f"labels {labels.shape} of boxes {boxes.shape}; expected one for each box")
    groups = [np.flatnonzero(labels == label) for label in sorted(set(labels.tolist()))]  # np.unique imports numpy.ma
    kept = [own[nms(boxes[own], scores[own], iou_threshold)] for own in groups]
    indices = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)
    return indices[np.argsort(-scores[indices], kind="stable")]

"""Mean average precision of boxes and of masks, as COCO defines it, at an overlap of one half.

Letters: N things found, M things in a scene, Y and X pixels.

Source:  Lin et al. 2014, arXiv:1405.0312, and its evaluation: 101 levels of recall, at most 100 things per picture
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.models.vision.scene_finder import SceneFinder
from tallow.models.vision.scenes import SceneDetector
from tallow.vision import box_iou

from .composing import Scene

LOWEST = 0.01  # score of things that count
OVERLAP = 0.5
LEVELS = np.linspace(0, 1, 101)
Floats = npt.NDArray[np.floating[Any]]


class Scores(NamedTuple):
    """Mean average precision of boxes, and of masks."""

    boxes: float
    masks: float


def evaluate(model: SceneDetector, scenes: Sequence[Scene]) -> Scores:
    """Return the scores of the detector on scenes."""
    finder = SceneFinder(model, side=model.config.side)
    found = [finder.find([each.pixels], LOWEST)[0] for each in scenes]

    def of_boxes(i: int, mine: Any, true: Any) -> Floats:
        return box_iou(found[i].boxes[mine], scenes[i].boxes[true])

    def of_masks(i: int, mine: Any, true: Any) -> Floats:
        return mask_iou(np.asarray(found[i].masks)[mine], scenes[i].masks[true])

    results = [(each.scores, each.labels) for each in found]
    truths = [each.labels for each in scenes]
    kinds = len(model.labels)
    return Scores(*(mean_precision(results, truths, kinds, overlap) for overlap in (of_boxes, of_masks)))


def mask_iou(found: npt.NDArray[np.bool_], true: npt.NDArray[np.bool_]) -> Floats:
    """Return the intersections over unions of masks.  Shapes: (N, Y, X), (M, Y, X) -> (N, M)"""
    pixels = found.shape[1] * found.shape[2]
    one, other = (masks.reshape(len(masks), pixels).astype(np.float32) for masks in (found, true))
    both = one @ other.T
    union = one.sum(1)[:, None] + other.sum(1) - both
    return both / np.maximum(union, 1)


def mean_precision(
    found: Sequence[tuple[Floats, npt.NDArray[np.int64]]],
    truths: Sequence[npt.NDArray[np.int64]],
    kinds: int,
    overlap: Callable[[int, Any, Any], Floats],
) -> float:
    """Return the mean of the average precisions of the kinds that occur.

    Args:
        found: scores and labels of what was found in each scene.
        truths: labels of what is in each scene.
        overlap: (scene, mask of found things (N,), mask of true things (M,)) -> their overlaps.
    """
    precisions = []
    for kind in range(kinds):
        scores: list[float] = []
        hits: list[bool] = []
        total = 0
        for i, ((own_scores, labels), true) in enumerate(zip(found, truths, strict=True)):
            mine, wanted = labels == kind, true == kind
            total += int(wanted.sum())
            if not mine.any():
                continue
            order = np.argsort(-own_scores[mine], kind="stable")
            ious = overlap(i, mine, wanted)[order]
            scores += own_scores[mine][order].tolist()
            hits += _hits(ious)
        if total:
            precisions.append(_average_precision(np.array(scores), np.array(hits, bool), total))
    return float(np.mean(precisions))


def _hits(ious_NM: Floats) -> list[bool]:
    """Return whether each found thing, the best first, is one that none before it was."""
    free = np.ones(ious_NM.shape[1], bool)
    hits = []
    for row in ious_NM:
        left = np.where(free, row, -1)
        best = int(left.argmax()) if left.size else -1
        hits.append(best >= 0 and left[best] >= OVERLAP)
        if hits[-1]:
            free[best] = False
    return hits


def _average_precision(scores: Floats, hits: npt.NDArray[np.bool_], total: int) -> float:
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(hits[order])
    recall = right / total
    precision = right / np.arange(1, len(right) + 1)
    best_from_here = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(recall, LEVELS, side="left")
    return float(np.append(best_from_here, 0.0)[np.minimum(places, len(right))].mean())

"""Boxes, their suppression, and pictures on canvases."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tallow.errors import ArgumentError, ShapeError
from tallow.vision import batched_nms, box_area, box_convert, box_iou, clip_boxes, letterbox, nms
from tallow.vision.boxes import FORMATS

FORMS = {
    "xyxy": [[10, 20, 30, 50], [0, 0, 2, 1]],
    "xywh": [[10, 20, 20, 30], [0, 0, 2, 1]],
    "cxcywh": [[20, 35, 20, 30], [1, 0.5, 2, 1]],
}


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_boxes_convert_between_formats(source: str, target: str) -> None:
    found = box_convert(np.array(FORMS[source], np.float32), source, target)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(FORMS[target]))


def test_unknown_formats_and_shapes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="yxyx"):
        box_convert([[0, 0, 1, 1]], "yxyx", "xyxy")
    with pytest.raises(ShapeError, match=r"expected \(\.\.\., 4\)"):
        box_area([1, 2, 3])
    with pytest.raises(ShapeError, match="one for each box"):
        nms(np.zeros((2, 4)), [0.5], 0.5)


def test_overlaps_are_shares_of_the_union() -> None:
    boxes = [[0, 0, 10, 10], [5, 5, 15, 15], [20, 20, 30, 30]]
    expected = [[1, 25 / 175, 0], [25 / 175, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(box_iou(boxes, boxes), np.array(expected))
    assert box_area(boxes).tolist() == [100, 100, 100]
    assert np.isnan(box_iou([[1, 1, 1, 1]], [[1, 1, 1, 1]])).all()


def test_clipped_boxes_lie_in_the_picture() -> None:
    assert clip_boxes([[-5.0, 3.0, 90.0, 80.0]], (50, 60)).tolist() == [[0, 3, 60, 50]]


def test_suppression_keeps_the_best_of_overlapping_boxes() -> None:
    """The numbers are those of torchvision's tests of nms: overlaps of 0.6 in float32 are above 0.6."""
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 6], [20, 0, 30, 10]], np.float32)
    assert nms(boxes, [0.5, 0.9, 0.1], 0.5).tolist() == [1, 2]
    assert nms(boxes, [0.5, 0.9, 0.1], 0.6).tolist() == [1, 2]
    assert nms(boxes.astype(np.float64), [0.5, 0.9, 0.1], 0.6).tolist() == [1, 0, 2]
    assert batched_nms(boxes, [0.5, 0.9, 0.95], [0, 1, 0], 0.5).tolist() == [2, 1, 0]
    assert batched_nms(np.zeros((0, 4)), [], [], 0.5).tolist() == []


def test_suppression_orders_scores_as_pytorch_sorts() -> None:
    """NaN comes first, so that no result hides it; equal scores stay in their order; they may be unsigned."""
    twice = np.array([[0, 0, 10, 10], [0, 0, 10, 10], [20, 20, 30, 30]], np.float32)
    assert nms(twice, [np.nan, 0.5, 0.9], 0.5).tolist() == [0, 2]
    assert nms(twice, np.array([0, 1, 200], np.uint8), 0.5).tolist() == [2, 1]
    assert batched_nms(twice, [0.5, 0.5, 0.5], [0, 1, 0], 0.5).tolist() == [0, 1, 2]
    for boxes, scores in ((np.zeros((2, 2, 4)), [0.5, 0.5]), (np.zeros(4), [0.5] * 4)):
        with pytest.raises(ShapeError, match="scores"):
            nms(boxes, scores, 0.5)


def test_areas_of_float16_are_float32() -> None:
    """As torchvision's: a square of 600 by 600 is beyond float16."""
    boxes = np.array([[0, 0, 600, 600], [0, 0, 600, 300]], np.float16)
    assert box_area(boxes).tolist() == [360_000, 180_000]
    np.testing.assert_array_equal(box_iou(boxes, boxes), [[1, 0.5], [0.5, 1]])


def test_many_boxes_are_compared_row_by_row() -> None:
    """A table of all pairs would take 8 MB."""
    corners = np.random.default_rng(0).integers(0, 100, (1000, 2)) * 10.0
    boxes = np.concatenate([corners, corners + 8], 1)
    tracemalloc.start()
    kept = nms(boxes, np.arange(1000.0), 0.5)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(kept) == len({*map(tuple, corners.tolist())})
    assert most < 1_000_000


def test_boxes_of_a_canvas_come_back_to_the_picture() -> None:
    pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pixels = np.full((50, 100, 3), 7, np.uint8)
    boxed = letterbox(pixels, (32, 32))
    assert boxed.pixels.shape == (32, 32, 3)
    assert (boxed.scale, boxed.left, boxed.top, boxed.inner) == (0.32, 0, 8, (0, 8, 32, 24))
    assert (boxed.pixels[8:24] == 7).all()
    assert (boxed.pixels[:8] == 114).all()
    assert (boxed.pixels[24:] == 114).all()
    np.testing.assert_allclose(
        boxed.to_picture([[0, 8, 32, 24], [-9, 12, 16, 90]]), np.array([[0, 0, 100, 50], [0, 12.5, 50, 50]])
    )
    with pytest.raises(ShapeError, match="uint8"):
        letterbox(pixels / 255, (32, 32))

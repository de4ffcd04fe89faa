"""Masks, COCO's codes of them, and pictures with what was found drawn on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tallow.errors import ArgumentError, ShapeError
from tallow.vision import Detection, decode_rle, draw_detections, encode_rle, mask_area, mask_box

MASK = np.zeros((9, 200), bool)
MASK[2:6, 3:7] = MASK[4:9, 60:190] = MASK[0, 0] = True
# What pycocotools 2.0 writes for it: a negative difference, and a number of several letters.
TEXT = "01l03YO00000o>1PA" + 257 * "0" + "f2"
BAD: dict[str, tuple[Any, str]] = {
    "size": ({"size": [2], "counts": "4"}, "of size"),
    "huge": ({"size": [1 << 20, 1 << 20], "counts": [1 << 40]}, "limit"),
    "short": ({"size": [2, 2], "counts": [1, 2]}, "3 pixels"),
    "negative": ({"size": [2, 2], "counts": [5, -1]}, "lengths of runs"),
    "letters": ({"size": [2, 2], "counts": "\n"}, "damaged at 0"),
    "cut": ({"size": [2, 2], "counts": "P"}, "ends in a number"),
    "endless": ({"size": [2, 2], "counts": "P" * 99}, "damaged at"),
    "none": ({"size": [2, 2]}, "lengths of runs"),
}


def test_codes_are_those_of_coco() -> None:
    code = encode_rle(MASK)
    assert code == {"size": [9, 200], "counts": TEXT}
    np.testing.assert_array_equal(decode_rle(code), MASK)
    np.testing.assert_array_equal(decode_rle(code | {"counts": TEXT.encode()}), MASK)


@pytest.mark.parametrize("mask", [MASK, ~MASK, MASK[:0], np.ones((3, 2), bool), np.zeros((3, 2), bool)])
def test_lists_of_lengths_come_back(mask: Any) -> None:
    code = encode_rle(mask, compressed=False)
    assert sum(code["counts"]) == mask.size
    np.testing.assert_array_equal(decode_rle(code), mask)
    np.testing.assert_array_equal(decode_rle(encode_rle(mask)), mask)


@pytest.mark.parametrize("name", BAD)
def test_damaged_codes_are_refused(name: str) -> None:
    code, reason = BAD[name]
    with pytest.raises(ArgumentError, match=reason):
        decode_rle(code)


def test_areas_and_boxes_of_masks() -> None:
    assert mask_area(MASK) == 16 + 5 * 130 + 1
    assert mask_box(MASK) == (0, 0, 190, 9)
    assert mask_box(np.zeros((3, 3))) == (0, 0, 0, 0)
    with pytest.raises(ShapeError, match="expected"):
        mask_box(np.zeros(3))


def test_drawn_pictures_show_boxes_and_masks() -> None:
    pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pixels = np.full((60, 120, 3), 200, np.uint8)
    mask = np.zeros((60, 120), bool)
    mask[40:50, 50:60] = True
    found = [Detection("cat", 0.9, (10, 30, 40, 55)), Detection("dog", 0.5, (45.0, 38.0, 62.0, 52.0), mask)]
    drawn = np.asarray(draw_detections(pixels, found, width=2))
    assert (pixels == 200).all()
    changed = (drawn != 200).any(axis=-1)
    assert changed[30:56, 10].all()  # the left edge of the first box
    assert not changed[34:50, 15:35].any()  # which has no mask
    assert changed[41:49, 51:59].all()
    assert len(np.unique(drawn[41:49, 51:59].reshape(-1, 3), axis=0)) == 1
    assert not changed[57:, :].any()
    with pytest.raises(ArgumentError, match="mask"):
        draw_detections(pixels, [Detection("cat", 0.9, (0, 0, 1, 1), np.ones((2, 2), bool))])


def test_labels_of_objects_at_an_edge_are_in_the_picture() -> None:
    pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pixels = np.full((60, 120, 3), 200, np.uint8)
    counts = []
    for left in (10, 115, -50):
        drawn = np.asarray(draw_detections(pixels, [Detection("cat", 0.9, (left, 30, left + 2, 50))], width=1))
        counts.append(int((drawn != 200).any(axis=-1)[:29].sum()))
    assert counts[0] > 300
    assert len({*counts}) == 1

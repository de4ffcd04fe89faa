"""Boxes as arrays whose last axis has four numbers, in pixels or as parts of a picture.

xyxy      left, top, right, bottom
xywh      left, top, width, height
cxcywh    centre, width, height

Letters: N and M boxes.

Source:  the functions of torchvision.ops of the same names
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, ShapeError

Boxes = npt.NDArray[Any]
FORMATS = ("xyxy", "xywh", "cxcywh")


def floating(boxes: Any) -> Boxes:
    """Return boxes in their floating-point dtype; integers in float64.  Raises: ShapeError for another last axis"""
    array = np.asarray(boxes)
    if not array.ndim or array.shape[-1] != 4:
        raise ShapeError(f"boxes {array.shape}; expected (..., 4)")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def box_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Boxes:
    """Return boxes in another format.

    Args:    in_fmt, out_fmt: "xyxy", "xywh" or "cxcywh"
    Shapes:  (..., 4) -> (..., 4)
    Raises:  ArgumentError for another format; ShapeError
    """
    for name in (in_fmt, out_fmt):
        if name not in FORMATS:
            raise ArgumentError(f"the format {name!r:.80} of boxes", hint=f"choose one of {', '.join(FORMATS)}")
    a, b = np.split(floating(boxes), 2, axis=-1)  # two points, or a point and a size
    if in_fmt == out_fmt:
        return np.concatenate([a, b], axis=-1)
    low = a - 0.5 * b if in_fmt == "cxcywh" else a
    size = b - a if in_fmt == "xyxy" else b
    if out_fmt == "xyxy":
        return np.concatenate([low, b if in_fmt == "xyxy" else low + size], axis=-1)
    return np.concatenate([low if out_fmt == "xywh" else low + 0.5 * size, size], axis=-1)


def box_area(boxes: Any) -> Boxes:
    """Return the areas of boxes.

    Args:    boxes: left, top, right, bottom
    Shapes:  (..., 4) -> (...)
    """
    boxes = _upcast(floating(boxes))
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def overlap(boxes: Boxes, others: Boxes) -> Boxes:
    """Return the intersection over union of boxes that broadcast; NaN for two boxes without area.

    Shapes:  (..., 4), (..., 4) -> (...)
    """
    sides = [
        np.minimum(boxes[..., i + 2], others[..., i + 2]) - np.maximum(boxes[..., i], others[..., i]) for i in (0, 1)
    ]
    width, height = (np.maximum(_upcast(side), 0) for side in sides)
    common = width * height
    with np.errstate(invalid="ignore"):
        return common / (box_area(boxes) + box_area(others) - common)


def _upcast(values: Boxes) -> Boxes:
    """Return values in a dtype that holds areas: float16 ends at a square of 255 by 255."""
    return values.astype(np.float32) if values.dtype == np.float16 else values


def box_iou(boxes: Any, others: Any) -> Boxes:
    """Return the intersection over union of each pair of boxes; NaN for two boxes without area.

    Args:    boxes, others: left, top, right, bottom
    Shapes:  (N, 4), (M, 4) -> (N, M)
    """
    return overlap(floating(boxes)[:, None], floating(others)[None])


def clip_boxes(boxes: Any, size: tuple[int, int]) -> Boxes:
    """Return boxes with their corners moved into a picture.

    Args:
        boxes: left, top, right, bottom.
        size: the height and width of the picture.

    Shapes:  (..., 4) -> (..., 4)
    """
    height, width = size
    return np.clip(floating(boxes), 0, np.array([width, height, width, height], floating(boxes).dtype))

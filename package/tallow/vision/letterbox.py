"""A picture in the middle of a canvas of fixed size, with its sides in their ratio.

Letters: Y and X pixels, N boxes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, ShapeError
from tallow.io.images import pillow
from tallow.vision.boxes import Boxes, clip_boxes, floating

Pixels = npt.NDArray[np.uint8]
GREY = 114  # of the margin, as YOLO models were trained with
BILINEAR = 2  # Pillow's number


class Letterboxed(NamedTuple):
    """A picture on its canvas.

    Attributes:
        pixels: (Y, X, 3), uint8.
        scale: the factor by which the picture was resized.
        left, top: the width and height of the margin before the picture.
        size: the height and width of the original picture.
    """

    pixels: Pixels
    scale: float
    left: int
    top: int
    size: tuple[int, int]

    def to_picture(self, boxes: Any) -> Boxes:
        """Return boxes (N, 4) of the canvas in pixels of the picture, inside of it."""
        boxes = floating(boxes)
        offset = np.array([self.left, self.top] * 2, boxes.dtype)
        return clip_boxes((boxes - offset) / boxes.dtype.type(self.scale), self.size)

    @property
    def inner(self) -> tuple[int, int, int, int]:
        """The left, top, right and bottom edge of the picture on the canvas."""
        height, width = resized(self.size, self.scale)
        return self.left, self.top, self.left + width, self.top + height


def resized(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """Return the height and width of a picture after resizing, at least 1 each."""
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def letterbox(pixels: Any, size: tuple[int, int], fill: int = GREY) -> Letterboxed:
    """Return a picture, resized by Pillow's bilinear filter, in the middle of a canvas.

    Args:
        pixels: (Y, X, 3), uint8.
        size: the height and width of the canvas.
        fill: the grey level of the margin.

    Raises:  ShapeError for another array; ArgumentError for a size below 1; MissingPackageError without Pillow if the
             picture has to be resized
    """
    array = np.asarray(pixels)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise ShapeError(f"an array of {array.dtype} {array.shape}; expected uint8 (height, width, 3)")
    if min(size) < 1:
        raise ArgumentError(f"a canvas of {size}", hint="pass a height and width of 1 or more")
    own = (array.shape[0], array.shape[1])
    scale = min(size[0] / own[0], size[1] / own[1])
    height, width = resized(own, scale)
    if (height, width) != own:
        array = np.asarray(pillow("letterbox").fromarray(array).resize((width, height), BILINEAR))
    canvas = np.full((*size, 3), fill, np.uint8)
    top, left = round((size[0] - height) / 2 - 0.1), round((size[1] - width) / 2 - 0.1)
    canvas[top : top + height, left : left + width] = array
    return Letterboxed(canvas, scale, left, top, own)

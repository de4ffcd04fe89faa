"""An object that was found in a picture."""

from __future__ import annotations

from typing import NamedTuple

from tallow.vision.masks import Mask


class Detection(NamedTuple):
    """An object in a picture.

    Attributes:
        label: what it is.
        score: from 0 to 1.
        box: its left, top, right and bottom edge, in pixels of the picture.
        mask: (height, width) of the picture, True where it is; None from a model of boxes.
    """

    label: str
    score: float
    box: tuple[float, float, float, float]
    mask: Mask | None = None

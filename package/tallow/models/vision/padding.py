"""Pictures of several sizes in one batch: zeros to the right and below, and masks of where pictures are.

Source:  the methods `pad` of transformers' image processors
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError
from tallow.io.images import MAX_PIXELS

# The kinds of image processors that pad pictures to one size, and whether they do by default.
PADS = {"Detr": True, "Yolos": True, "RTDetr": False, "MaskFormer": True, "Mask2Former": True}


def is_length(value: Any) -> bool:
    """Return whether a value is a length in pixels, of which a square is no larger than an image may be."""
    return type(value) is int and value > 0 and value * value <= MAX_PIXELS


def padded(
    arrays: list[npt.NDArray[Any]], size: Mapping[str, int] | None
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[np.int64]]]:
    """Return pictures (3, Y, X) up to one size, and masks (Y, X): 1 where they are, 0 where they were padded.

    Args:    size: {"height", "width"}; None means the largest of each
    Raises:  ArgumentError for a picture that is larger, and a size that is none
    """
    if size is None:
        most = np.max([each.shape[1:] for each in arrays], axis=0).tolist()
    elif isinstance(size, Mapping) and all(is_length(size.get(name)) for name in ("height", "width")):
        most = [size["height"], size["width"]]
    else:
        raise ArgumentError(f"pad_size={size!r:.80}", hint='pass {"height": 800, "width": 1333}, or None')
    pixels, masks = [], []
    for array in arrays:
        below, right = most[0] - array.shape[1], most[1] - array.shape[2]
        if min(below, right) < 0:
            what = f"a picture of {array.shape[1:]}, padded to {tuple(most)}"
            raise ArgumentError(what, hint="pass a larger pad_size")
        pixels.append(np.pad(array, ((0, 0), (0, below), (0, right))))
        masks.append(np.pad(np.ones(array.shape[1:], np.int64), ((0, below), (0, right))))
    return pixels, masks

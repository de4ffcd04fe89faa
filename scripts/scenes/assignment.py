"""Choice of the cells of the detector that answer for the things of a scene.

Letters: A cells of all scales, N things, M cells that answer for one.

Source:  Tian et al. 2019, arXiv:1904.01355, and its centre sampling
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.models.vision.scenes import STRIDES, cell_centres

RADIUS = 1.5  # of the cells around the centre of a thing that answer for it, in strides
SPANS = ((0, 52), (40, 1e9))  # longest sides of the things of a scale


class Assigned(NamedTuple):
    """Cells that answer, and the things that they answer for.  Shapes: (M,), (M,)"""

    cells: npt.NDArray[np.int64]
    things: npt.NDArray[np.int64]


def assign(boxes_N4: npt.NDArray[np.float32], side: int) -> Assigned:
    """Return the cells that answer for the things of a scene; where several could, for the smallest."""
    if not len(boxes_N4):
        return Assigned(np.zeros(0, np.int64), np.zeros(0, np.int64))
    centres_A2 = cell_centres(side, side)
    counts = [(side // stride) ** 2 for stride in STRIDES]
    stride_A = np.repeat(STRIDES, counts)
    low_A, high_A = (np.repeat([span[end] for span in SPANS], counts) for end in (0, 1))
    sides_N2 = boxes_N4[:, 2:] - boxes_N4[:, :2]
    middle_N2 = (boxes_N4[:, 2:] + boxes_N4[:, :2]) / 2
    longest_N = sides_N2.max(1)
    off_AN = np.abs(centres_A2[:, None] - middle_N2).max(-1)
    inside_AN = ((centres_A2[:, None] > boxes_N4[:, :2]) & (centres_A2[:, None] < boxes_N4[:, 2:])).all(-1)
    of_scale_AN = (longest_N >= low_A[:, None]) & (longest_N <= high_A[:, None])
    # A thin or small thing may contain no centre of a cell near its own: then the nearest cell answers.
    fits_AN = inside_AN & of_scale_AN & (off_AN < RADIUS * stride_A[:, None])
    nearest_N = np.where(of_scale_AN, off_AN / stride_A[:, None], np.inf).argmin(0)
    lonely = np.flatnonzero(~fits_AN.any(0))
    fits_AN[nearest_N[lonely], lonely] = True
    area_AN = np.where(fits_AN, sides_N2.prod(1), np.inf)
    cells = np.flatnonzero(fits_AN.any(1))
    return Assigned(cells, area_AN[cells].argmin(1))

"""Objects in pictures as models return them, and the interface of models.

Letters: N objects, Y and X pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tallow.errors import NumericError


class Found(NamedTuple):
    """The objects of one picture.

    Attributes:
        labels: indices into the labels of the model.
        boxes: left, top, right and bottom edges, in pixels of the picture.

    Shapes:  scores (N,), labels (N,), boxes (N, 4), masks (N, Y, X) of bool with the size of the picture, or None
    """

    scores: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    boxes: npt.NDArray[Any]
    masks: npt.NDArray[np.bool_] | None = None


class Finder(Protocol):
    """A model with what it needs to find objects in pictures.

    Attributes:
        labels: names of the kinds of objects.
    """

    labels: tuple[str, ...]

    def find(self, pictures: Sequence[npt.NDArray[np.uint8]], threshold: float) -> list[Found]:
        """Return the objects of pictures (Y, X, 3) in RGB, of any sizes, with scores above a threshold."""


def require_finite(*results: npt.NDArray[Any]) -> None:
    """Raise NumericError for results that hold NaN or infinities."""
    if not all(np.isfinite(each).all() for each in results):
        raise NumericError("a result holds NaN or infinities", hint="check the weights: tallow inspect --check")

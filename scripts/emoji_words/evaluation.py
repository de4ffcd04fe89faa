"""Recall: how often the emoji of a name is among the first that a search for the name finds.

Letters: K emoji, E width of the vectors, N names.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tallow.models.vision.picture_words import PictureWords

from .names import Name


def recall(encoder: PictureWords, names: Sequence[Name], index_KE: npt.NDArray[np.float32], count: int) -> float:
    """Return the share of names whose emoji is among the `count` pictures with the nearest vectors."""
    return float((ranks(encoder, names, index_KE) < count).mean())


def ranks(encoder: PictureWords, names: Sequence[Name], index_KE: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return the number (N,) of pictures that are nearer to a name than its own; a vector that is equal counts."""
    scores_NK = encoder.encode_texts([name.text for name in names]) @ index_KE.T
    own_N = scores_NK[np.arange(len(names)), [name.emoji for name in names]]
    return (scores_NK >= own_N[:, None]).sum(1) - 1

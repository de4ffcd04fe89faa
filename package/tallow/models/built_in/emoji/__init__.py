"""The built-in encoder of pictures and words, and an index of emoji: pictures are found by words in twelve languages.

It was trained with tallow, by `scripts/train_emoji.py`. README.md in this folder describes its data, training and
quality; LICENSE-UNICODE is the licence of the names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.errors import CheckpointError
from tallow.io import safetensors
from tallow.io.source import Source
from tallow.models.vision.picture_words import PictureWords
from tallow.models.vision.scenes import widened

FOLDER = Path(__file__).parent
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "index.safetensors"
KNOWS = "emoji, by words of twelve languages"


class Index(NamedTuple):
    """Emoji, and their vectors.  Shapes: vectors (N, E)"""

    emoji: tuple[str, ...]
    vectors: npt.NDArray[np.float32]


def load(device: Any = None) -> PictureWords:
    """Return the encoder, in float32.

    Example:
        encoder, index = emoji.load(), emoji.read_index()
        scores = index.vectors @ encoder.encode_texts("a red fruit")
        [index.emoji[i] for i in (-scores).argsort()[:5]]
    """
    return PictureWords.from_files(FOLDER / CONFIG, FOLDER / WEIGHTS).to(device or "cpu")


def read_index(source: Source = FOLDER / INDEX) -> Index:
    """Return the emoji that are known, each with the vector that it learned from its names and pictures.

    Args:    source: the file of another index.
    Raises:  CheckpointError for another file; OSError
    """
    with safetensors.safe_open(source) as file:
        names = file.metadata().get("emoji", "")
    vectors = widened(safetensors.load(source)).get("vectors")
    if vectors is None or vectors.ndim != 2 or len(vectors) != len(names):
        raise CheckpointError("the file is not an index of emoji", hint="scripts/train_emoji.py writes one")
    return Index(tuple(names), vectors.numpy())

"""The datasets of `tallow.data` as arrays, in Keras' cache folder."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tallow.data.images import ImageDataset
from tallow.errors import DatasetError

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Part = tuple[Pixels, Pixels]


def load(dataset: type[ImageDataset]) -> tuple[Part, Part]:
    """Return the images and labels for training, and those for testing.

    The files are read from `~/.keras/datasets`, or `$KERAS_HOME/datasets`. Missing or incomplete files are downloaded,
    which needs the extra `data`.

    Dtypes:  uint8
    Raises:  DatasetError if they can be neither read nor downloaded
    """
    return _part(dataset, train=True), _part(dataset, train=False)


def _part(dataset: type[ImageDataset], train: bool) -> Part:
    folder = os.path.join(os.path.expanduser(os.environ.get("KERAS_HOME", "~/.keras")), "datasets")
    try:
        part = dataset(folder, train)
    except DatasetError:
        part = dataset(folder, train, download=True)
    return np.asarray(part.data), np.asarray(part.targets, np.uint8)

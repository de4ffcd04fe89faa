"""The data sets of `tallow.data` as arrays, from the folder where Keras keeps its own."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tallow.data.images import ImageDataset
from tallow.errors import DatasetError

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Part = tuple[Pixels, Pixels]


def load(dataset: type[ImageDataset]) -> tuple[Part, Part]:
    """The images and labels to train with, and those to test with.

    The files are looked for in `~/.keras/datasets`, or `$KERAS_HOME/datasets`, and downloaded to it where they are not
    there, or not whole. That needs the extra `data`.

    Dtypes:  uint8
    Raises:  DatasetError when they can be neither read nor downloaded
    """
    return _part(dataset, train=True), _part(dataset, train=False)


def _part(dataset: type[ImageDataset], train: bool) -> Part:
    folder = os.path.join(os.path.expanduser(os.environ.get("KERAS_HOME", "~/.keras")), "datasets")
    try:
        part = dataset(folder, train)
    except DatasetError:
        part = dataset(folder, train, download=True)
    return np.asarray(part.data), np.asarray(part.targets, np.uint8)

"""Data in two parts."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow.data import Dataset, Subset, TensorDataset
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.random import default_generator


def split_dataset(
    dataset: Any,
    left_size: int | float | None = None,
    right_size: int | float | None = None,
    shuffle: bool = False,
    seed: int | None = None,
) -> tuple[Subset[Any], Subset[Any]]:
    """The first samples and the last ones, as data sets that `fit` and a DataLoader take.

    Args:
        dataset: an array, a list or tuple of arrays of one length, or a `tallow.data.Dataset` that can be indexed.
        left_size, right_size: so many samples, or a part of them from 0 to 1; one of them may be left out.
        shuffle: draw which samples; `seed` makes it the same each time.

    Raises:  ArgumentError for sizes that do not fit, ArgumentTypeError for other data
    """
    if not isinstance(dataset, Dataset):
        arrays = list(dataset) if isinstance(dataset, list | tuple) else [dataset]
        if not arrays or not all(hasattr(array, "shape") for array in arrays):
            raise ArgumentTypeError("split_dataset: expected an array, a list of arrays, or a tallow.data.Dataset")
        dataset = TensorDataset(*(tl.as_tensor(array) for array in arrays))
    total = len(dataset)
    left, right = _sizes(left_size, right_size, total)
    order = np.arange(total)
    if shuffle:
        draws = default_generator.numpy if seed is None else np.random.default_rng(seed)
        order = draws.permutation(total)
    places = order.tolist()
    return Subset(dataset, places[:left]), Subset(dataset, places[total - right :])


def _sizes(left: int | float | None, right: int | float | None, total: int) -> tuple[int, int]:
    """How many samples are on either side."""
    if left is None and right is None:
        raise ArgumentError("split_dataset: left_size and right_size are both None", mend="give one of them")
    for name, size in (("left_size", left), ("right_size", right)):
        if size is not None and not (0 < size < 1 if isinstance(size, float) else 0 < size < total):
            raise ArgumentError(
                f"split_dataset: {name}={size} of {total} samples", mend="a float is a part, an int a count"
            )
    first, last = (round(size * total) if isinstance(size, float) else size for size in (left, right))
    first = total - last if first is None and last is not None else first
    last = total - first if last is None and first is not None else last
    if not first or not last or first + last > total:
        raise ArgumentError(f"split_dataset: {first} and {last} samples of {total}", mend="let both fit, and have some")
    return first, last

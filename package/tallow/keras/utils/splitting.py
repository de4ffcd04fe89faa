"""Split datasets."""

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
    """Split samples into a first and a last part, as datasets that `fit` and a DataLoader accept.

    Args:
        dataset: an array, a list or tuple of arrays of the same length, or a `tallow.data.Dataset` with indexing.
        left_size, right_size: a number of samples, or a fraction from 0 to 1; one of them may be None.
        shuffle: shuffle the samples first; `seed` makes the order reproducible.

    Raises:  ArgumentError for sizes that do not fit, ArgumentTypeError for other data
    """
    if not isinstance(dataset, Dataset):
        arrays = list(dataset) if isinstance(dataset, list | tuple) else [dataset]
        if not arrays or not all(hasattr(array, "shape") for array in arrays):
            raise ArgumentTypeError("split_dataset: expected an array, a list of arrays, or a tallow.data.Dataset")
        dataset = TensorDataset(*(tl.as_tensor(array) for array in arrays))
    total = len(dataset)
    left, right = _split_sizes(left_size, right_size, total)
    order = np.arange(total)
    if shuffle:
        rng = default_generator.numpy if seed is None else np.random.default_rng(seed)
        order = rng.permutation(total)
    indices = order.tolist()
    return Subset(dataset, indices[:left]), Subset(dataset, indices[total - right :])


def _split_sizes(left: int | float | None, right: int | float | None, total: int) -> tuple[int, int]:
    """Return the number of samples on each side."""
    if left is None and right is None:
        raise ArgumentError("split_dataset: left_size and right_size are both None", hint="pass one of them")
    for name, size in (("left_size", left), ("right_size", right)):
        if size is not None and not (0 < size < 1 if isinstance(size, float) else 0 < size < total):
            raise ArgumentError(
                f"split_dataset: {name}={size} of {total} samples", hint="a float is a fraction, an int a count"
            )
    first, last = (round(size * total) if isinstance(size, float) else size for size in (left, right))
    first = total - last if first is None and last is not None else first
    last = total - first if last is None and first is not None else last
    if not first or not last or first + last > total:
        raise ArgumentError(
            f"split_dataset: {first} and {last} samples of {total}",
            hint="both parts must be non-empty and fit the dataset",
        )
    return first, last

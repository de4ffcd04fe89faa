"""Labels, sequences and vectors as arrays, and the global random seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow import random as tallow_random
from tallow.errors import ArgumentError

Array = np.ndarray[Any, Any]


def set_random_seed(seed: int) -> None:
    """Seed Python's, NumPy's and tallow's random numbers, including layers, dropout and shuffling."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    tallow_random.manual_seed(seed)


def to_categorical(x: Any, num_classes: int | None = None) -> Array:
    """Convert integer labels to one-hot vectors in float32.

    Args:
        num_classes: by default one more than the largest label.

    Shapes:  x (...) or (..., 1) of integers -> (..., num_classes)
    Raises:  ArgumentError for a label out of range

    Example:
        >>> from tallow import keras
        >>> keras.utils.to_categorical([0, 2])
        array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    labels = np.asarray(x).astype(np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    classes = int(labels.max(initial=-1)) + 1 if num_classes is None else num_classes
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ArgumentError(
            f"to_categorical: labels from {labels.min()} to {labels.max()} are out of range for {classes} classes"
        )
    one_hot: Array = np.zeros((labels.size, classes), np.float32)
    one_hot[np.arange(labels.size), labels.reshape(-1)] = 1
    return one_hot.reshape(*labels.shape, classes)


def normalize(x: Any, axis: int = -1, order: int = 2) -> Array:
    """Divide vectors along `axis` by their norm of this order; zero vectors stay unchanged."""
    array = np.atleast_1d(np.asarray(x))
    norms = np.linalg.norm(array, order, axis, keepdims=True)
    return array / np.where(norms == 0, 1, norms)


def pad_sequences(
    sequences: Sequence[Sequence[Any]],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> Array:
    """Pad or truncate sequences to one length and return them as one array.

    Args:
        maxlen: the length of all sequences; by default the longest one's.
        padding, truncating: whether to add `value` or remove elements at the start ("pre") or at the end ("post").

    Shapes:  N sequences of elements (...) -> (N, maxlen, ...)
    """
    if not {padding, truncating} <= {"pre", "post"}:
        raise ArgumentError(f"pad_sequences: padding={padding!r}, truncating={truncating!r}", hint="use 'pre', 'post'")
    arrays = [np.asarray(sequence) for sequence in sequences]
    if scalars := [index for index, array in enumerate(arrays) if not array.ndim]:
        raise ArgumentError(f"pad_sequences: item {scalars[0]} is not a sequence", hint="pass a list of sequences")
    length = max((len(array) for array in arrays), default=0) if maxlen is None else maxlen
    element = next((array.shape[1:] for array in arrays if len(array)), ())
    padded: Array = np.full((len(arrays), length, *element), value, dtype=dtype)
    for row, array in zip(padded, arrays, strict=True):
        part = array[max(len(array) - length, 0) :] if truncating == "pre" else array[:length]
        start = length - len(part) if padding == "pre" else 0
        if len(part):
            row[start : start + len(part)] = part
    return padded

"""Windows of a time series."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from tallow.errors import ArgumentError
from tallow.keras.py_dataset import PyDataset
from tallow.random import default_generator

Array = np.ndarray[Any, Any]


class Windows(PyDataset):
    """Batches of windows of a series, each with the target at its first step, if there are targets.

    Args:
        starts: the first step of each window.
        offsets: the steps of a window relative to its start.
        batch_size: the number of windows per batch; None yields single windows without a batch axis.
    """

    def __init__(
        self, data: Array, targets: Array | None, starts: Array, offsets: Array, batch_size: int | None
    ) -> None:
        super().__init__()
        self._data = data
        self._targets = targets
        self._starts = starts
        self._offsets = offsets
        self._batch_size = batch_size

    def __len__(self) -> int:
        return ceil(len(self._starts) / (self._batch_size or 1))

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        if self._batch_size is None:
            starts = self._starts[index]
        else:
            starts = self._starts[index * self._batch_size : (index + 1) * self._batch_size]
        x = self._data[np.asarray(starts)[..., None] + self._offsets]
        return x if self._targets is None else (x, self._targets[starts])


def timeseries_dataset_from_array(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
) -> Windows:
    """Return batches of windows of a series, for `fit` or for iteration.

    Args:
        data: the series, with time as its first axis.
        targets: the target of the window that starts at each step; or None.
        sequence_length: the number of steps in a window.
        sequence_stride: the number of steps between the starts of consecutive windows.
        sampling_rate: the number of steps between consecutive steps of a window.
        shuffle: shuffle the windows once; `seed` makes the order reproducible.
        start_index, end_index: use only this part of the series.

    Raises:  ArgumentError for sizes that do not fit the series
    """
    series = np.asarray(data)
    numbers = {"sequence_length": sequence_length, "sequence_stride": sequence_stride, "sampling_rate": sampling_rate}
    for name, number in numbers.items():
        if not 0 < number < len(series) and not (name == "sequence_length" and number == len(series)):
            raise ArgumentError(f"timeseries_dataset_from_array: {name}={number} for {len(series)} steps")
    first, last = start_index or 0, len(series) if end_index is None else end_index
    if not 0 <= first < last <= len(series):
        raise ArgumentError(f"timeseries_dataset_from_array: steps {first} to {last} of {len(series)}")
    window_targets = None if targets is None else np.asarray(targets)[first:last]
    count = last - first - (sequence_length - 1) * sampling_rate
    if targets is not None:
        count = min(count, len(np.asarray(targets)))
    starts = np.arange(0, max(count, 0), sequence_stride)
    if shuffle:
        rng = default_generator.numpy if seed is None else np.random.default_rng(seed)
        starts = rng.permutation(starts)
    offsets = np.arange(0, sequence_length * sampling_rate, sampling_rate)
    return Windows(series[first:last], window_targets, starts, offsets, batch_size)

"""Windows of a series."""

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
        starts: where the windows begin.
        offsets: of the steps of a window from there.
        batch_size: windows of a batch; None yields windows one by one, without an axis for the batch.
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
    """Batches of windows of a series, to be given to `fit` or walked through.

    Args:
        data: the series, its first axis the time.
        targets: by the step at which a window begins; or None.
        sequence_length: steps of a window.
        sequence_stride: steps between the beginnings of two windows.
        sampling_rate: steps between two of a window.
        shuffle: the windows in an order that is drawn once; `seed` makes it the same each time.
        start_index, end_index: use this part of the series.

    Raises:  ArgumentError for a number that makes no sense
    """
    series = np.asarray(data)
    numbers = {"sequence_length": sequence_length, "sequence_stride": sequence_stride, "sampling_rate": sampling_rate}
    for name, number in numbers.items():
        if not 0 < number < len(series) and not (name == "sequence_length" and number == len(series)):
            raise ArgumentError(f"timeseries_dataset_from_array: {name}={number} for {len(series)} steps")
    first, last = start_index or 0, len(series) if end_index is None else end_index
    if not 0 <= first < last <= len(series):
        raise ArgumentError(f"timeseries_dataset_from_array: steps {first} to {last} of {len(series)}")
    wanted = None if targets is None else np.asarray(targets)[first:last]
    count = last - first - (sequence_length - 1) * sampling_rate
    if targets is not None:
        count = min(count, len(np.asarray(targets)))
    starts = np.arange(0, max(count, 0), sequence_stride)
    if shuffle:
        draws = default_generator.numpy if seed is None else np.random.default_rng(seed)
        starts = draws.permutation(starts)
    offsets = np.arange(0, sequence_length * sampling_rate, sampling_rate)
    return Windows(series[first:last], wanted, starts, offsets, batch_size)

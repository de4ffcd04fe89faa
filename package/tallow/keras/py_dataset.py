"""PyDataset: batches by index, read or computed on demand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from typing import Any

from tallow.errors import ArgumentError
from tallow.random import default_generator


class PyDataset:
    """Batches for `fit`, `evaluate` and `predict`.

    A subclass defines `__len__`, the number of batches, and `__getitem__`, which returns batch `index` as x, (x, y) or
    (x, y, sample_weight).

    Args:
        workers: the number of threads that call `__getitem__` ahead of time; 1 calls it on demand.
        use_multiprocessing: not supported; use a `tallow.data.DataLoader` for processes.
        max_queue_size: the maximum number of prefetched batches.

    Example:
        class Squares(keras.utils.PyDataset):
            def __len__(self):
                return 10

            def __getitem__(self, index):
                x = np.random.default_rng(index).normal(size=(32, 1))
                return x, x**2
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        if use_multiprocessing:
            raise ArgumentError(
                "PyDataset: use_multiprocessing is not supported",
                hint="pass workers=4 for threads, or a tallow.data.DataLoader with num_workers=4",
            )
        if workers < 1 or max_queue_size < 1:
            raise ArgumentError("PyDataset: workers and max_queue_size must be 1 or more")
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__(index)")

    @property
    def num_batches(self) -> int | None:
        """The number of batches; a subclass may return None for an infinite dataset."""
        if not hasattr(self, "__len__"):
            raise NotImplementedError(f"{type(self).__name__} defines neither __len__ nor num_batches")
        return len(self)

    def on_epoch_begin(self) -> None:
        """Hook before each iteration over the batches."""

    def on_epoch_end(self) -> None:
        """Hook after each complete iteration over the batches."""


class PyDatasetBatches:
    """Iterable of the batches of a PyDataset, which can be restarted.

    Args:    shuffle: use a new order of batches each time.
    """

    def __init__(self, dataset: Any, shuffle: bool = False) -> None:
        self._dataset = dataset
        self._shuffle = shuffle

    def __len__(self) -> int:
        return self._dataset.num_batches or 0

    def __iter__(self) -> Iterator[Any]:
        dataset = self._dataset
        dataset.on_epoch_begin()
        size = dataset.num_batches
        order: Iterable[int] = count() if size is None else range(size)
        if self._shuffle and size is not None:
            order = default_generator.numpy.permutation(size).tolist()
        yield from _prefetch(dataset, order) if dataset.workers > 1 else map(dataset.__getitem__, order)
        dataset.on_epoch_end()


def _prefetch(dataset: Any, order: Iterable[int]) -> Iterator[Any]:
    """Yield the batches in order, while threads prefetch the next ones."""
    indices = iter(order)
    with ThreadPoolExecutor(dataset.workers) as threads:
        futures = deque(threads.submit(dataset.__getitem__, i) for i in islice(indices, dataset.max_queue_size))
        try:
            while futures:
                yield futures.popleft().result()
                futures.extend(threads.submit(dataset.__getitem__, i) for i in islice(indices, 1))
        finally:
            for future in futures:
                future.cancel()

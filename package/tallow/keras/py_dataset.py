"""PyDataset: batches by number, from files or computed as they are needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from typing import Any

from tallow.errors import ArgumentError
from tallow.random import default_generator


class PyDataset:
    """Batches for `fit`, `evaluate` and `predict`: a subclass defines `__len__`, their number, and `__getitem__`, which
    returns batch `index` as x, (x, y) or (x, y, sample_weight).

    Args:
        workers: threads that call `__getitem__` ahead of time; 1 calls it when the batch is needed.
        use_multiprocessing: refused; a `tallow.data.DataLoader` has processes.
        max_queue_size: how many batches the threads may be ahead.

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
                mend="pass workers=4 for threads, or a tallow.data.DataLoader with num_workers=4",
            )
        if workers < 1 or max_queue_size < 1:
            raise ArgumentError("PyDataset: workers and max_queue_size must be 1 or more")
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(index); define it")

    @property
    def num_batches(self) -> int | None:
        """How many batches there are; None, in a subclass, for batches without end."""
        if not hasattr(self, "__len__"):
            raise NotImplementedError(f"{type(self).__name__} has no __len__; define it, or num_batches")
        return len(self)

    def on_epoch_begin(self) -> None:
        """Called before each walk through the batches."""

    def on_epoch_end(self) -> None:
        """Called after each whole walk through the batches."""


class Walk:
    """The batches of a PyDataset as an iterable, each time anew.

    Args:    shuffle: take the batches in a new order each time.
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
        yield from _ahead(dataset, order) if dataset.workers > 1 else map(dataset.__getitem__, order)
        dataset.on_epoch_end()


def _ahead(dataset: Any, order: Iterable[int]) -> Iterator[Any]:
    """The batches in order, some of them made by threads before they are needed."""
    places = iter(order)
    with ThreadPoolExecutor(dataset.workers) as threads:
        waiting = deque(threads.submit(dataset.__getitem__, i) for i in islice(places, dataset.max_queue_size))
        try:
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(threads.submit(dataset.__getitem__, place) for place in islice(places, 1))
        finally:
            for future in waiting:
                future.cancel()

"""The iterators of a `DataLoader`: the base class, and the one that loads in the calling process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tallow import devices
from tallow.data.collate import pin_memory
from tallow.data.sampler import draw_seed
from tallow.errors import ArgumentTypeError, warn

if TYPE_CHECKING:
    from tallow.data.dataloader import DataLoader


class LoaderIterator(Iterator[Any]):
    """Iterator over a `DataLoader`; a subclass defines `_next`, which returns the next batch."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._index_sampler = loader.index_sampler
        self._indices = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._reported = loader.reported_length
        self._pin_memory = loader.pin_memory and devices.available("cuda") is not None
        self._yielded = 0

    def restart(self) -> None:
        """Start another epoch."""
        self._indices = iter(self._index_sampler)
        self._yielded = 0

    def __len__(self) -> int:
        return len(self._index_sampler)  # type: ignore[arg-type]  # raises as in PyTorch if it has none

    def __next__(self) -> Any:
        batch = self._next()
        self._yielded += 1
        if self._reported is not None and self._yielded > self._reported:
            warn(
                f"the length of the IterableDataset was reported to be {self._reported}, but {self._yielded} batches "
                "have been fetched; with workers, each must take its share of the samples: see get_worker_info()"
            )
        return pin_memory(batch) if self._pin_memory else batch

    def _next(self) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> Any:
        raise ArgumentTypeError(f"{type(self).__name__} cannot be pickled", hint="pickle the DataLoader")


class LocalIterator(LoaderIterator):
    """Iterator that loads each batch on request, in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._fetch = loader.plan.fetcher()

    def _next(self) -> Any:
        return self._fetch(next(self._indices))

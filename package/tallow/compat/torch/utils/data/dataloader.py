"""Names of `torch.utils.data.dataloader` that tallow itself does not have."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

from tallow.data.collate import default_collate as default_collate
from tallow.data.dataloader import DataLoader as DataLoader
from tallow.data.dataset import Dataset as Dataset
from tallow.data.dataset import IterableDataset as IterableDataset
from tallow.data.fetch import Plan
from tallow.data.iterator import LoaderIterator as _BaseDataLoaderIter  # noqa: F401 - programs check for it
from tallow.data.iterator import LocalIterator
from tallow.data.processes import ProcessIterator as _MultiProcessingDataLoaderIter  # noqa: F401
from tallow.data.sampler import BatchSampler as BatchSampler
from tallow.data.sampler import RandomSampler as RandomSampler
from tallow.data.sampler import Sampler as Sampler
from tallow.data.sampler import SequentialSampler as SequentialSampler

_collate_fn_t: TypeAlias = Callable[[list[Any]], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]


class _AnyLocalIterator(type):
    """The class of `_SingleProcessDataLoaderIter`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, LocalIterator)

    def __call__(cls, loader: Any) -> LocalIterator:
        """Return an iterator over a DataLoader, or over an object with the attributes that PyTorch's iterator reads."""
        return LocalIterator(loader if isinstance(loader, DataLoader) else _as_loader(loader))


class _SingleProcessDataLoaderIter(metaclass=_AnyLocalIterator):
    """The iterator of a DataLoader without workers."""


class _Samples(IterableDataset[Any]):
    """The samples of another object."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Any:
        return iter(self.source)


def _as_loader(loader: Any) -> Any:
    data = loader.dataset if loader._dataset_kind == _DatasetKind.Map else _Samples(loader.dataset)
    plan = Plan(data, loader._auto_collation, loader.collate_fn, loader.drop_last)
    own = {"index_sampler": loader._index_sampler, "generator": loader.generator, "reported_length": None}
    return SimpleNamespace(**own, plan=plan, pin_memory=loader.pin_memory)


class _DatasetKind:
    """The kinds of data sets, as `DataLoader._dataset_kind` has them."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[Any]):
    """Yield None without end."""

    def __iter__(self) -> Any:
        while True:
            yield None

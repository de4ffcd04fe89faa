"""Names of `torch.utils.data.dataloader` that tallow itself does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tallow.data.collate import default_collate as default_collate
from tallow.data.dataloader import DataLoader as DataLoader
from tallow.data.dataset import Dataset as Dataset
from tallow.data.dataset import IterableDataset as IterableDataset
from tallow.data.iterator import LoaderIterator as _BaseDataLoaderIter  # noqa: F401 - programs check for it
from tallow.data.iterator import LocalIterator as _SingleProcessDataLoaderIter  # noqa: F401
from tallow.data.processes import ProcessIterator as _MultiProcessingDataLoaderIter  # noqa: F401
from tallow.data.sampler import BatchSampler as BatchSampler
from tallow.data.sampler import RandomSampler as RandomSampler
from tallow.data.sampler import Sampler as Sampler
from tallow.data.sampler import SequentialSampler as SequentialSampler

_collate_fn_t: TypeAlias = Callable[[list[Any]], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]


class _DatasetKind:
    """The kinds of data sets, as `DataLoader._dataset_kind` has them."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[Any]):
    """Yield None without end."""

    def __iter__(self) -> Any:
        while True:
            yield None

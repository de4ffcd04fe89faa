"""DataLoader, which iterates over batches of a dataset, as in torch.utils.data."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, Generic, Protocol, TypeVar

from tallow.data.collate import default_collate, default_convert
from tallow.data.dataset import IterableDataset
from tallow.data.fetch import Plan
from tallow.data.iterator import LoaderIterator, LocalIterator
from tallow.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from tallow.errors import ArgumentError, ArgumentTypeError, warn
from tallow.random import Generator

T_co = TypeVar("T_co", covariant=True)
FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
HAS_PROCESSES = sys.platform not in ("emscripten", "wasi")


class _Unending(Sampler[None]):
    """Placeholder sampler for an iterable dataset, which has no indices and ends by itself."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class Indexed(Protocol[T_co]):
    """Anything with samples by index, which may be no `Dataset`: a list, for example."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class DataLoader(Generic[T_co]):
    """Iterable over the batches of a dataset, as torch.utils.data.DataLoader.

    Args:
        dataset: has `__getitem__` and `__len__`, or is an `IterableDataset`.
        batch_size: number of samples per batch; None yields single samples.
        shuffle: use a new random order in each iteration.
        sampler: the order of the samples, an iterable of indices.
        batch_sampler: the batches, an iterable of lists of indices.
        num_workers: number of processes that load batches in advance; 0 loads each batch on request in this process. A
            browser tab has no processes: values above 0 cause a warning and count as 0.
        collate_fn: function from a list of samples to a batch.
        pin_memory: return batches in pinned memory, so that `batch.to("cuda", non_blocking=True)` does not block; no
            effect without a GPU. A custom batch class needs a method `pin_memory`.
        drop_last: drop the last batch if it is smaller.
        timeout: maximum time to wait for a batch from a worker, in seconds; 0 means no limit.
        worker_init_fn: called in each worker at its start, with its number.
        multiprocessing_context: start method of workers ("fork", "spawn", "forkserver") or a context.
        generator: source of the random order and of the workers' base seed. Restoring a state saved before an iteration
            repeats that iteration.
        prefetch_factor: number of batches that each worker loads in advance; 2 by default.
        persistent_workers: keep the workers running for the next iteration.
        pin_memory_device: accepted for compatibility with PyTorch.
        in_order: False yields batches of workers as they arrive.

    Raises:  ArgumentError for conflicting arguments; while iterating, any exception of the dataset (from a worker, with
        its traceback in the message), and WorkerError if a worker dies or times out

    Example:
        >>> import tallow as tl
        >>> loader = DataLoader(tl.data.TensorDataset(tl.arange(5), tl.arange(5) ** 2), batch_size=3)
        >>> for x, y in loader:
        ...     print(x.tolist(), y.tolist())
        [0, 1, 2] [0, 1, 4]
        [3, 4] [9, 16]
    """

    _initialized = False

    def __init__(
        self,
        dataset: Indexed[T_co] | Iterable[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_sampling(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.batch_size = batch_size if batch_sampler is None else None
        self.drop_last = drop_last
        self.sampler = sampler if sampler is not None else _default_sampler(dataset, shuffle, generator)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self.reported_length: int | None = None  # of an iterable dataset, once `len` was called
        self._iterator: Any = None  # the iterator with persistent workers
        self._initialized = True
        if num_workers:
            _check_processors(num_workers)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in FIXED:
            raise ArgumentError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The start method of workers, as a context of multiprocessing."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None and not self.num_workers:
            raise ArgumentError("multiprocessing_context can only be used with multi-process loading (num_workers > 0)")
        self._context = context if context is None or not HAS_PROCESSES else _as_context(context)

    @property
    def index_sampler(self) -> Iterable[Any]:
        """The sampler of the iteration: it yields lists of indices, or single indices without batching."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def plan(self) -> Plan:
        """The dataset and its options, as workers need them."""
        return Plan(self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            if self.timeout:
                raise ArgumentError(f"DataLoader: timeout={self.timeout} needs num_workers > 0")
            return LocalIterator(self)
        if not HAS_PROCESSES:
            warn(f"DataLoader: {sys.platform} has no processes: num_workers={self.num_workers} counts as 0")
            return LocalIterator(self)
        return self._process_iterator()

    def _process_iterator(self) -> LoaderIterator:
        from tallow.data.processes import ProcessIterator  # imports multiprocessing, which browsers lack

        if not self.persistent_workers:
            return ProcessIterator(self)
        if self._iterator is not None and self._iterator.alive:
            self._iterator.restart()
        else:
            self._iterator = ProcessIterator(self)
        return self._iterator

    def __len__(self) -> int:
        """Return the number of batches; for an iterable dataset, based on the length it reports."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self.index_sampler)  # type: ignore[arg-type]  # raises as in PyTorch if it has none
        self.reported_length = samples = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else math.ceil(samples / self.batch_size)


def _check_worker_options(workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if workers < 0:
        raise ArgumentError(
            f"DataLoader: num_workers option should be non-negative, got {workers}",
            hint="use num_workers=0 to load in this process",
        )
    if timeout < 0:
        raise ArgumentError(f"DataLoader: timeout option should be non-negative, got {timeout}")
    if not workers and prefetch_factor is not None:
        raise ArgumentError(
            "DataLoader: prefetch_factor option could only be specified in multiprocessing: num_workers > 0"
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ArgumentError(f"DataLoader: prefetch_factor option should be positive, got {prefetch_factor}")
    if persistent and not workers:
        raise ArgumentError("DataLoader: persistent_workers option needs num_workers > 0")


def _check_sampling(
    dataset: Any, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if isinstance(dataset, IterableDataset):
        options = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in options.items():
            if value is not None:
                raise ArgumentError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                )
    if sampler is not None and shuffle:
        raise ArgumentError("DataLoader: sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ArgumentError(
            "DataLoader: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_sampler is None and batch_size is None and drop_last:
        raise ArgumentError(
            "DataLoader: batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _default_sampler(dataset: Any, shuffle: bool | None, generator: Generator | None) -> Sampler[Any]:
    if isinstance(dataset, IterableDataset):
        return _Unending()
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


def _check_processors(workers: int) -> None:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if HAS_PROCESSES and available is not None and workers > available:
        warn(
            f"This DataLoader will create {workers} worker processes in total. Our suggested max number of worker in "
            f"current system is {available}; more may be slow, or freeze it."
        )


def _as_context(context: Any) -> Any:
    import multiprocessing  # 10 ms, needed only with workers

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ArgumentError(
                f"multiprocessing_context should specify a valid start method in {methods}, got {context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise ArgumentTypeError(
            f"multiprocessing_context should be a context or the name of a start method, got {type(context).__name__}"
        )
    return context

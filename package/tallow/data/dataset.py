"""Datasets for a `DataLoader`, as in torch.utils.data."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError, warn
from tallow.functions.sampling import randperm
from tallow.random import Generator

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index or key, as torch.utils.data.Dataset.

    A subclass defines `__getitem__`, and `__len__` for samplers. It may also define `__getitems__`, which takes the
    indices of a batch and returns a list of samples.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples, as torch.utils.data.IterableDataset.

    A subclass defines `__iter__`. Each worker process of a `DataLoader` iterates over its own copy: use
    `get_worker_info()` to choose its share of the samples, or every worker yields all of them.
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset[Any]:  # type: ignore[override]  # as in PyTorch
        return ChainDataset([self, other])


class Samples(Sequence[T_co]):
    """The samples of a dataset at `indices`, returned by `__getitems__` if a batch can be built at once.

    Args:
        collate: function from the indices to the result of `default_collate` on the samples.
    """

    def __init__(self, dataset: Any, indices: Sequence[int], collate: Callable[[Sequence[int]], Any]) -> None:
        self._dataset = dataset
        self._indices = indices
        self._collate = collate

    def collate(self) -> Any:
        """Return the collated batch."""
        return self._collate(self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self._dataset[index] for index in self._indices[position]]
        return self._dataset[self._indices[position]]


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors: sample i is (tensors[0][i], tensors[1][i], ...).

    Shapes:  tensors (N, ...) each
    Raises:  ArgumentTypeError for other arrays, ShapeError if they differ in N
    """

    def __init__(self, *tensors: Tensor) -> None:
        if others := [type(item).__name__ for item in tensors if not isinstance(item, Tensor)]:
            raise ArgumentTypeError(
                f"TensorDataset: expected tensors, got {', '.join(others)}",
                hint="convert NumPy arrays with from_numpy, lists with tensor",
            )
        if len({tensor.size(0) for tensor in tensors}) > 1:
            raise ShapeError(
                f"TensorDataset: size mismatch between tensors: {[tuple(tensor.shape) for tensor in tensors]}; "
                "expected the same first dimension"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getitems__(self, indices: Sequence[int]) -> Sequence[tuple[Tensor, ...]]:
        if type(self).__getitem__ is not TensorDataset.__getitem__:  # an override must be called for each sample
            return [self[index] for index in indices]
        return Samples(self, indices, self._rows)

    def _rows(self, indices: Sequence[int]) -> list[Tensor]:
        rows = wrap(np.asarray([index.__index__() for index in indices], np.int64))
        return [tensor[rows] for tensor in self.tensors]

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Datasets of equal length, zipped: samples are tuples, or dicts for datasets passed by keyword.

    Raises:  ArgumentError for no datasets, both kinds, or different lengths
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ArgumentError("StackDataset takes datasets by position (for tuples) or by keyword (for dicts)")
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in (*args, *kwargs.values())]
        if not lengths:
            raise ArgumentError("StackDataset: at least one dataset should be passed")
        if len(set(lengths)) > 1:
            raise ArgumentError(f"StackDataset: size mismatch between datasets: {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [_get_items(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*(_get_items(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def _get_items(dataset: Any, indices: Sequence[Any]) -> Sequence[Any]:
    """Return the samples at `indices`, with `__getitems__` if the dataset has it.

    Raises:  ArgumentError if that returns another number of samples
    """
    get = getattr(dataset, "__getitems__", None)
    if not callable(get):
        return [dataset[index] for index in indices]
    items = get(indices)
    if len(items) != len(indices):
        raise ArgumentError(
            f"{type(dataset).__name__}.__getitems__: nested dataset's output size mismatch: expected {len(indices)} "
            f"samples, got {len(items)}"
        )
    return items


class ConcatDataset(Dataset[T_co]):
    """Concatenated datasets. `cumulative_sizes` are their end positions.

    Raises:  ArgumentError for no datasets; ArgumentTypeError for an `IterableDataset`
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise ArgumentTypeError("ConcatDataset does not support IterableDataset", hint="use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < -len(self):
            raise ArgumentError(f"ConcatDataset: absolute value of index {idx} should not exceed length {len(self)}")
        if idx < 0:
            idx += len(self)
        position = bisect_right(self.cumulative_sizes, idx)
        if position == len(self.datasets):
            raise IndexError(f"ConcatDataset: index {idx} is out of range for length {len(self)}")
        return self.datasets[position][idx - (self.cumulative_sizes[position - 1] if position else 0)]


class ChainDataset(IterableDataset[T_co]):
    """Concatenated iterable datasets. Iterating raises ArgumentTypeError for other datasets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self._check_each():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._check_each())

    def _check_each(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise ArgumentTypeError(f"ChainDataset only supports IterableDataset, not {type(dataset).__name__}")
            yield dataset


class Subset(Dataset[T_co]):
    """The samples of a dataset at `indices`.

    Raises:  NotImplementedError for a subclass that overrides `__getitem__` but not `__getitems__`, which `DataLoader`
        calls
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        subclass = type(self)
        if subclass.__getitem__ is not Subset.__getitem__ and subclass.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{subclass.__name__} overrides __getitem__ but not __getitems__, which DataLoader calls; add\n"
                "    def __getitems__(self, indices):\n        return [self[index] for index in indices]"
            )
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[T_co]:
        inner = [self.indices[i] for i in indices]
        get = getattr(self.dataset, "__getitems__", None)
        return get(inner) if get else [self.dataset[i] for i in inner]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Split a dataset randomly into disjoint subsets of given lengths.

    Args:
        lengths: lengths of the subsets; or, if they sum to 1, fractions. Fractions are rounded down, and the remaining
            samples are assigned one by one, from the first subset on.

    Raises:  ArgumentError for lengths that do not sum to the dataset's, or fractions outside 0 to 1

    Example:
        >>> import tallow as tl
        >>> train, rest = tl.data.random_split(range(10), [0.75, 0.25], tl.Generator().manual_seed(0))
        >>> len(train), len(rest), sorted([*train, *rest]) == list(range(10))
        (8, 2, True)
    """
    size = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _fractions_of(size, lengths)
    if sum(lengths) != size:
        raise ArgumentError(
            f"random_split: sum of input lengths {list(lengths)} does not equal the length {size} of the input dataset"
        )
    order = iter(randperm(size, generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(order, int(length)))) for length in lengths]


def _fractions_of(size: int, fractions: Sequence[float]) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ArgumentError(f"random_split: fraction {fraction} at index {i} is not between 0 and 1")
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for i in range(size - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if not length:
            warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    return lengths

"""torch.utils.data compared with PyTorch: batches, collation, splits and errors."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data

import tallow as tl

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

Point = namedtuple("Point", ["x", "y"])
N = 23
X = np.random.default_rng(0).standard_normal((N, 3)).astype(np.float32)
Y = np.arange(N)
ORDER = np.random.default_rng(1).permutation(N).tolist()


def comparable(x: Any) -> Any:
    """Return a comparable form of a value: tensors as dtype, shape, elements; containers with their type."""
    if isinstance(x, tl.Tensor | torch.Tensor):
        return str(x.dtype).removeprefix("torch.").removeprefix("tallow."), tuple(x.shape), x.tolist()
    if isinstance(x, Mapping):
        return type(x), [(key, comparable(value)) for key, value in x.items()]
    if isinstance(x, list | tuple):
        return type(x), [comparable(item) for item in x]
    return type(x), x


def both(run: Callable[[Any], Any]) -> tuple[Any, Any]:
    return comparable(run(tl)), comparable(run(torch))


def rows(m: Any) -> Any:
    return m.utils.data.TensorDataset(m.tensor(X), m.tensor(Y))


def count(m: Any, n: int) -> Any:
    """An iterable dataset of n numbers; each worker takes a share."""

    class Count(m.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Iterator[int]:
            info = m.utils.data.get_worker_info()
            return iter(range(n)) if info is None else iter(range(info.id, n, info.num_workers))

        def __len__(self) -> int:
            return n

    return Count()


LOADERS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda m: m.utils.data.DataLoader(rows(m)),
    "batches": lambda m: m.utils.data.DataLoader(rows(m), batch_size=5),
    "drop_last": lambda m: m.utils.data.DataLoader(rows(m), batch_size=5, drop_last=True),
    "sampler": lambda m: m.utils.data.DataLoader(rows(m), 4, sampler=ORDER),
    "tensor sampler": lambda m: m.utils.data.DataLoader(rows(m), 4, sampler=m.tensor(ORDER)),
    "batch_sampler": lambda m: m.utils.data.DataLoader(rows(m), batch_sampler=[[3, 1], [-1], [0, 0, 2]]),
    "no batches": lambda m: m.utils.data.DataLoader(rows(m), batch_size=None),
    "a batch as a sample": lambda m: m.utils.data.DataLoader(rows(m), None, sampler=[[1, 2], [0]]),
    "subset": lambda m: m.utils.data.DataLoader(m.utils.data.Subset(rows(m), ORDER[:9]), 4),
    "concat": lambda m: m.utils.data.DataLoader(rows(m) + rows(m), 10),
    "stack": lambda m: m.utils.data.DataLoader(m.utils.data.StackDataset(a=rows(m), b=range(N)), 10),
    "list": lambda m: m.utils.data.DataLoader([(0.5, "a"), (1.5, "b"), (2.5, "c")], 2),
    "numpy": lambda m: m.utils.data.DataLoader(X, 7),
    "iterable": lambda m: m.utils.data.DataLoader(count(m, 10), 4),
    "iterable, drop_last": lambda m: m.utils.data.DataLoader(count(m, 10), 4, drop_last=True),
    "iterable, no batches": lambda m: m.utils.data.DataLoader(count(m, 3), None),
    "chain": lambda m: m.utils.data.DataLoader(count(m, 3) + count(m, 2), 2),
    "empty": lambda m: m.utils.data.DataLoader([], 2),
    "collate_fn": lambda m: m.utils.data.DataLoader(rows(m), 4, collate_fn=lambda samples: len(samples)),
}


@pytest.mark.parametrize("name", LOADERS)
def test_batches(name: str) -> None:
    ours, theirs = both(lambda m: list(LOADERS[name](m)))
    assert ours == theirs


@pytest.mark.parametrize("name", [name for name in LOADERS if name != "a batch as a sample"])
def test_lengths(name: str) -> None:
    assert len(LOADERS[name](tl)) == len(LOADERS[name](torch))


@pytest.mark.native
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 10, 13])
def test_batches_of_workers(workers: int, n: int) -> None:
    def run(m: Any) -> Any:
        return [
            list(m.utils.data.DataLoader(dataset, 2, num_workers=workers, prefetch_factor=prefetch))
            for dataset in (count(m, n), range(n))
            for prefetch in (1, 2)
        ]

    ours, theirs = both(run)
    # If workers end early, PyTorch's order depends on timing; the batches are the same.
    for mine, other in zip(ours[1], theirs[1], strict=True):
        assert sorted(map(str, mine[1])) == sorted(map(str, other[1]))
    assert ours[1][2:] == theirs[1][2:]


class Frozen(Mapping[str, Any]):
    def __init__(self, items: Any) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Tagged(dict[str, Any]):
    tag = "none"


BATCHES: dict[str, Callable[[Any], Any]] = {
    "tensors": lambda m: [m.tensor([1.0, 2.0]), m.tensor([3.0, 4.0])],
    "0-d tensors": lambda m: [m.tensor(1), m.tensor(2)],
    "tensors of two dtypes": lambda m: [m.tensor([1]), m.tensor([2.5])],
    "empty tensors": lambda m: [m.zeros(0, 2), m.zeros(0, 2)],
    "arrays": lambda m: [np.ones((2, 2), np.int8), np.zeros((2, 2), np.int8)],
    "0-d arrays": lambda m: [np.array(1.5), np.array(2.5)],
    "float64 scalars": lambda m: [np.float64(1.5), np.float64(2.5)],
    "float32 scalars": lambda m: [np.float32(1.5), np.float32(2.5)],
    "int32 scalars": lambda m: [np.int32(1), np.int32(2)],
    "bool scalars": lambda m: [np.bool_(True), np.bool_(False)],
    "floats": lambda m: [0.1, 2.0],
    "ints": lambda m: [1, 2**40],
    "bools": lambda m: [True, False],
    "an int first": lambda m: [1, 2.5],
    "strings": lambda m: ["a", "bc"],
    "bytes": lambda m: [b"a", b"bc"],
    "tuples": lambda m: [(1, "a", 2.0), (2, "b", 3.0)],
    "lists": lambda m: [[1, [2.0]], [3, [4.0]]],
    "ranges": lambda m: [range(3), range(3)],
    "named tuples": lambda m: [Point(1, (2, 3)), Point(4, (5, 6))],
    "dicts": lambda m: [{"a": 1, "b": "x"}, {"b": "y", "a": 2}],
    "ordered dicts": lambda m: [OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)],
    "mappings": lambda m: [Frozen({"a": 1}), Frozen({"a": 2})],
    "dicts with attributes": lambda m: [Tagged(a=1), Tagged(a=2)],
    "one sample": lambda m: [(m.tensor([1.0]), 3)],
}


@pytest.mark.parametrize("name", BATCHES)
def test_default_collate(name: str) -> None:
    ours, theirs = both(lambda m: m.utils.data.default_collate(BATCHES[name](m)))
    assert ours == theirs


@pytest.mark.parametrize("name", BATCHES)
def test_default_convert(name: str) -> None:
    ours, theirs = both(lambda m: m.utils.data.default_convert(BATCHES[name](m)))
    assert ours == theirs


def test_attributes_of_a_dict_are_kept() -> None:
    def run(m: Any) -> Any:
        first = Tagged(a=1)
        first.tag = "kept"
        return m.utils.data.default_collate([first, Tagged(a=2)]).tag

    assert run(tl) == run(torch) == "kept"


@pytest.mark.parametrize("lengths", [[10, 13], [0.5, 0.5], [0.2, 0.3, 0.5], [0.1] * 10, [1.0]])
def test_lengths_of_random_split(lengths: list[float]) -> None:
    ours, theirs = both(lambda m: [len(part) for part in m.utils.data.random_split(range(N), lengths)])
    assert ours == theirs


@pytest.mark.parametrize(("n", "replicas"), [(N, 3), (6, 3), (1, 4), (2, 5)])
@pytest.mark.parametrize("drop_last", [False, True])
def test_shares_of_a_dataset(n: int, replicas: int, drop_last: bool) -> None:
    def run(m: Any, shuffle: bool = False) -> Any:
        shares = [
            m.utils.data.DistributedSampler(range(n), replicas, rank, shuffle=shuffle, drop_last=drop_last)
            for rank in range(replicas)
        ]
        return [(list(share), len(share)) for share in shares]

    ours, theirs = both(run)
    assert ours == theirs
    shuffled = [index for share, _ in run(tl, shuffle=True) for index in share]
    assert len(shuffled) == sum(length for _, length in run(tl))
    assert drop_last or set(shuffled) == set(range(n))


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "shuffle nothing": lambda d: d.DataLoader([], shuffle=True),
    "shuffle and sampler": lambda d: d.DataLoader([1], shuffle=True, sampler=[0]),
    "batch_sampler and batch_size": lambda d: d.DataLoader([1], batch_sampler=[[0]], batch_size=2),
    "drop_last without batches": lambda d: d.DataLoader([1], batch_size=None, drop_last=True),
    "negative workers": lambda d: d.DataLoader([1], num_workers=-1),
    "negative timeout": lambda d: d.DataLoader([1], timeout=-1),
    "prefetch without workers": lambda d: d.DataLoader([1], prefetch_factor=3),
    "persistent without workers": lambda d: d.DataLoader([1], persistent_workers=True),
    "context without workers": lambda d: d.DataLoader([1], multiprocessing_context="spawn"),
    "no such context": lambda d: d.DataLoader([1], num_workers=1, multiprocessing_context="x"),
    "no context": lambda d: d.DataLoader([1], num_workers=1, multiprocessing_context=1),
    "batch_size 0": lambda d: d.DataLoader([1], batch_size=0),
    "batch_size 1.5": lambda d: d.DataLoader([1], batch_size=1.5),
    "set batch_size": lambda d: setattr(d.DataLoader([1]), "batch_size", 3),
    "shuffle without a length": lambda d: d.DataLoader(d.Dataset(), shuffle=True),
    "length without a length": lambda d: len(d.DataLoader(d.Dataset())),
    "shares of nobody": lambda d: d.DistributedSampler([1]),
    "rank beyond": lambda d: d.DistributedSampler([1], 2, 2),
    "no samples": lambda d: d.Dataset()[0],
    "replacement 1": lambda d: d.RandomSampler([1], replacement=1),
    "num_samples 0": lambda d: d.RandomSampler([1], num_samples=0),
    "weights of a matrix": lambda d: d.WeightedRandomSampler([[1.0]], 1),
    "weights without replacement": lambda d: list(d.WeightedRandomSampler([1.0, 1.0], 3, replacement=False)),
    "drop_last 1": lambda d: d.BatchSampler([1], 1, 1),
    "stack of two kinds": lambda d: d.StackDataset([1], a=[1]),
    "stack of nothing": lambda d: d.StackDataset(),
    "stack of two lengths": lambda d: d.StackDataset([1], [1, 2]),
    "concat out of range": lambda d: d.ConcatDataset([[1]])[-2],
    "concat beyond": lambda d: d.ConcatDataset([[1]])[1],
    "split that does not sum": lambda d: d.random_split([1, 2], [1, 2]),
    "fractions out of range": lambda d: d.random_split([1, 2], [1.5, -0.5]),
    "subset that hides": lambda d: type("S", (d.Subset,), {"__getitem__": lambda s, i: 0})([1], [0]),
    "collate objects": lambda d: d.default_collate([object()]),
    "collate None": lambda d: d.default_collate([None]),
    "collate words": lambda d: d.default_collate([np.array(["a"])]),
    "collate unequal": lambda d: d.default_collate([[1], [1, 2]]),
    "collate nothing": lambda d: d.default_collate([]),
    "collate without a key": lambda d: d.default_collate([{"a": 1}, {"b": 1}]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_error_types_are_pytorchs(name: str) -> None:
    kinds = []
    for module in (torch, tl):
        with pytest.raises(Exception) as caught:
            MISTAKES[name](module.utils.data)
        kinds.append(caught.type)
    theirs, ours = kinds
    assert issubclass(ours, theirs)


def test_all_public_names_exist() -> None:
    pipes = {"DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "_DatasetKind"}
    pipes |= {"argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic"}
    pipes |= {"runtime_validation", "runtime_validation_disabled"}
    assert not set(torch.utils.data.__all__) - pipes - set(dir(tl.utils.data))


def test_signatures_are_pytorchs() -> None:
    for name in set(torch.utils.data.__all__) & set(dir(tl.utils.data)):
        theirs, ours = getattr(torch.utils.data, name), getattr(tl.utils.data, name)
        if name in ("WorkerInfo", "Dataset", "IterableDataset", "Sampler"):
            continue
        assert [*signature(ours).parameters] == [*signature(theirs).parameters], name

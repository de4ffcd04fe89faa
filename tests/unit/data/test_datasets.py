"""Datasets, splits, samplers and collation."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
from tallow.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError

Point = namedtuple("Point", ["x", "y"])


class Count(IterableDataset[int]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.n


class Squares(Dataset[int]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, index: int) -> int:
        return index**2

    def __len__(self) -> int:
        return self.n


class Batched(Squares):
    """Returns one sample too many for a batch if requested."""

    extra = 0

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [index**2 for index in indices] + [0] * self.extra


def test_a_tensor_dataset_gives_rows() -> None:
    dataset = TensorDataset(tl.arange(6).reshape(3, 2), tl.tensor([7.0, 8.0, 9.0]))
    assert len(dataset) == 3
    x, y = dataset[1]
    assert x.tolist() == [2, 3]
    assert y.item() == 8
    x, y = dataset[-1]
    assert x.tolist() == [4, 5]
    assert [part.shape for part in dataset[:2]] == [(2, 2), (2,)]
    with pytest.raises(IndexError):
        dataset[3]


def test_tensors_of_a_dataset_have_one_length() -> None:
    with pytest.raises(ShapeError, match=r"size mismatch between tensors: \[\(3,\), \(2, 1\)\]"):
        TensorDataset(tl.zeros(3), tl.zeros(2, 1))
    with pytest.raises(ArgumentTypeError, match="expected tensors, got ndarray"):
        TensorDataset(tl.zeros(3), np.zeros(3))  # type: ignore[arg-type]


def test_samples_at_once_are_the_samples_one_by_one() -> None:
    dataset = TensorDataset(tl.arange(8).reshape(4, 2), tl.arange(4))
    at_once = dataset.__getitems__([3, 0, 3])
    assert [(x.tolist(), y.item()) for x, y in at_once] == [([6, 7], 3), ([0, 1], 0), ([6, 7], 3)]
    x, y = default_collate(at_once)
    by_one_x, by_one_y = default_collate([dataset[3], dataset[0], dataset[3]])
    assert x.tolist() == by_one_x.tolist()
    assert y.tolist() == by_one_y.tolist()
    assert [y.item() for _, y in at_once[1:]] == [0, 3]


def test_a_subclass_with_samples_of_its_own_has_batches_of_them() -> None:
    class Negated(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return tuple(-x for x in super().__getitem__(index))

    (batch,) = default_collate(Negated(tl.arange(3)).__getitems__([2, 1]))
    assert batch.tolist() == [-2, -1]


def test_rows_keep_their_history() -> None:
    weight = tl.ones(3, 2, requires_grad=True)
    (rows,) = default_collate(TensorDataset(weight).__getitems__([1, 1, 2]))
    rows.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[0, 0], [2, 2], [1, 1]]


def test_a_sum_of_datasets_is_one_after_the_other() -> None:
    both = Squares(3) + Squares(2)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 0, 1]
    assert both[-1] == 1
    assert both.cumulative_sizes == [3, 5]
    with pytest.raises(ValueError, match="should not exceed length 5"):
        both[-6]
    with pytest.raises(IndexError):
        both[5]


def test_concat_takes_datasets_with_indices() -> None:
    with pytest.raises(ArgumentError, match="empty iterable"):
        ConcatDataset([])
    with pytest.raises(ArgumentTypeError, match="does not support IterableDataset"):
        ConcatDataset([Squares(1), Count(2)])


def test_chained_datasets_are_iterated_one_after_the_other() -> None:
    chained = Count(2) + Count(3)
    assert isinstance(chained, ChainDataset)
    assert list(chained) == [0, 1, 0, 1, 2]
    assert len(chained) == 5
    with pytest.raises(ArgumentTypeError, match="only supports IterableDataset"):
        list(ChainDataset([Count(1), Squares(1)]))


@pytest.mark.parametrize("inner", [Squares, Batched])
def test_stacked_datasets_give_tuples_or_dicts(inner: type[Squares]) -> None:
    by_place = StackDataset(inner(3), [5, 6, 7])
    assert by_place[2] == (4, 7)
    assert by_place.__getitems__([0, 2]) == [(0, 5), (4, 7)]
    by_name = StackDataset(square=inner(3), other=[5, 6, 7])
    assert by_name[1] == {"square": 1, "other": 6}
    assert by_name.__getitems__([1]) == [{"square": 1, "other": 6}]
    assert len(by_name) == 3


def test_stacked_datasets_must_fit() -> None:
    with pytest.raises(ArgumentError, match="size mismatch"):
        StackDataset(Squares(2), Squares(3))
    with pytest.raises(ArgumentError, match="at least one"):
        StackDataset()
    with pytest.raises(ArgumentError, match="by position"):
        StackDataset(Squares(2), b=Squares(2))
    wrong = Batched(3)
    wrong.extra = 1
    with pytest.raises(ArgumentError, match="expected 2 samples, got 3"):
        StackDataset(wrong).__getitems__([0, 1])


def test_a_subset_takes_samples_by_its_own_indices() -> None:
    subset = Subset(Squares(10), [9, 5, 2])
    assert len(subset) == 3
    assert list(subset) == [81, 25, 4]
    assert list(subset.__getitems__([2, 0])) == [4, 81]
    rows = Subset(TensorDataset(tl.arange(10)), [9, 5, 2])
    assert default_collate(rows.__getitems__([0, 2]))[0].tolist() == [9, 2]
    assert rows[[0, 1]][0].tolist() == [9, 5]


def test_a_subset_uses_the_batches_of_its_dataset() -> None:
    class Whole(Squares):
        def __getitems__(self, indices: list[int]) -> Any:
            return {"indices": indices}

    assert Subset(Whole(9), [4, 5, 6]).__getitems__([2, 0]) == {"indices": [6, 4]}


def test_a_subset_that_overrides_only_getitem_is_refused() -> None:
    class Halves(Subset[Any]):
        def __getitem__(self, index: Any) -> Any:
            return super().__getitem__(index) / 2

    with pytest.raises(NotImplementedError, match="Halves overrides __getitem__ but not __getitems__"):
        Halves(Squares(3), [0])


def test_the_base_classes_have_no_samples() -> None:
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset[int]()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler[int]())


# ----------------------------------------------------------------------------------------------------- random_split


@given(st.lists(st.integers(0, 20), min_size=1, max_size=5))
def test_a_split_deals_out_each_sample_once(lengths: list[int]) -> None:
    if sum(lengths) == 1:  # these mean fractions
        lengths[0] += 1
    parts = random_split(range(sum(lengths)), lengths)
    assert [len(part) for part in parts] == lengths
    assert sorted(sample for part in parts for sample in part) == list(range(sum(lengths)))


@pytest.mark.parametrize(
    ("size", "fractions", "lengths"),
    [(10, [0.5, 0.5], [5, 5]), (10, [0.75, 0.25], [8, 2]), (11, [0.3, 0.3, 0.4], [4, 3, 4]), (7, [1.0], [7])],
)
def test_fractions_are_rounded_down_and_the_rest_dealt_out(
    size: int, fractions: list[float], lengths: list[int]
) -> None:
    # floor(n f), then one more for each part in turn, as random_split's documentation says
    assert [len(part) for part in random_split(range(size), fractions)] == lengths


def test_a_seed_fixes_a_split() -> None:
    first, again = (random_split(range(50), [20, 30], tl.Generator().manual_seed(4)) for _ in range(2))
    assert [part.indices for part in first] == [part.indices for part in again]
    assert first[0].indices != list(range(20))


def test_lengths_must_fit_the_dataset() -> None:
    with pytest.raises(ArgumentError, match=r"sum of input lengths \[3, 4\] does not equal the length 10"):
        random_split(range(10), [3, 4])
    with pytest.raises(ArgumentError, match=r"fraction 1\.5 at index 0"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(1), [0.5, 0.5])


# --------------------------------------------------------------------------------------------------------- samplers


def test_a_random_sampler_takes_each_index_once() -> None:
    sampler = RandomSampler(range(30))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second
    assert len(sampler) == 30


def test_more_samples_than_the_dataset_has() -> None:
    indices = list(RandomSampler(range(4), num_samples=10))
    assert sorted(indices[:4]) == sorted(indices[4:8]) == [0, 1, 2, 3]
    assert len(indices) == 10


def test_fewer_samples_than_the_dataset_has() -> None:
    sampler = RandomSampler(range(6), num_samples=2, generator=tl.Generator().manual_seed(0))
    passes = [tuple(sampler) for _ in range(600)]
    assert all(len(set(indices)) == 2 for indices in passes)
    counts = np.bincount(np.ravel(passes), minlength=6)
    assert abs(counts - 200).max() < 5 * (600 * 1 / 3 * 2 / 3) ** 0.5  # five standard deviations


def test_replacement_draws_independently() -> None:
    indices = list(RandomSampler(range(3), replacement=True, num_samples=5000, generator=tl.Generator().manual_seed(0)))
    assert len(indices) == 5000
    counts = np.bincount(indices, minlength=3)
    assert abs(counts - 5000 / 3).max() < 5 * (5000 * 1 / 3 * 2 / 3) ** 0.5  # five standard deviations


@pytest.mark.parametrize(
    "make",
    [
        lambda g: RandomSampler(range(50), generator=g),
        lambda g: RandomSampler(range(50), replacement=True, generator=g),
        lambda g: SubsetRandomSampler(range(50), generator=g),
        lambda g: WeightedRandomSampler([1.0] * 50, 20, generator=g),
    ],
)
def test_a_saved_generator_repeats_the_order(make: Callable[[tl.Generator], Sampler[int]]) -> None:
    generator = tl.Generator().manual_seed(1)
    sampler = make(generator)
    list(sampler)
    state = generator.get_state()
    order = list(sampler)
    assert list(sampler) != order
    generator.set_state(state)
    assert list(sampler) == order


def test_the_default_seed_fixes_the_order() -> None:
    tl.manual_seed(5)
    order = list(RandomSampler(range(50)))
    tl.manual_seed(5)
    assert list(RandomSampler(range(50))) == order


def test_each_process_takes_its_share_of_an_order_that_all_know() -> None:
    shares = [DistributedSampler(range(30), num_replicas=3, rank=rank, seed=4) for rank in range(3)]
    first = [list(share) for share in shares]
    assert sorted(index for share in first for index in share) == list(range(30))
    assert [list(share) for share in shares] == first
    for share in shares:
        share.set_epoch(1)
    second = [list(share) for share in shares]
    assert sorted(index for share in second for index in share) == list(range(30))
    assert second != first


def test_weighted_sampling() -> None:
    assert set(WeightedRandomSampler([0.0, 1.0, 3.0], 200)) == {1, 2}
    assert sorted(WeightedRandomSampler([0.5, 1.0, 3.0], 3, replacement=False)) == [0, 1, 2]
    assert sorted(SubsetRandomSampler([4, 8, 9])) == [4, 8, 9]


@given(st.integers(0, 40), st.integers(1, 9), st.booleans())
def test_batches_cut_the_indices(n: int, size: int, drop_last: bool) -> None:
    sampler = BatchSampler(SequentialSampler(range(n)), size, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert all(len(batch) == size for batch in batches[:-1])
    count = n // size * size if drop_last else n
    assert [index for batch in batches for index in batch] == list(range(count))


def test_batches_of_an_endless_sampler() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 3

    assert list(islice(BatchSampler(endless(), 2, False), 2)) == [[3, 3], [3, 3]]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda: RandomSampler([]),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=0",
        ),
        (lambda: RandomSampler([1], num_samples=2.5), ValueError, "num_samples=2.5"),  # type: ignore[arg-type]
        (lambda: RandomSampler([1], replacement=1), TypeError, "replacement should be a boolean"),  # type: ignore[arg-type]
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "positive integer value, but got num_samples=0"),
        (lambda: WeightedRandomSampler([1.0], 1, replacement=2), ValueError, "boolean"),  # type: ignore[arg-type]
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "1d sequence"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size should be a positive integer"),
        (lambda: BatchSampler([1], True, False), ValueError, "batch_size should be a positive integer"),
        (lambda: BatchSampler([1], 2, 1), ValueError, "drop_last should be a boolean"),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments_are_refused(make: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


# ---------------------------------------------------------------------------------------------------------- collate


def test_leaves_become_tensors_with_a_batch_in_front() -> None:
    assert default_collate([tl.ones(2, 3), tl.zeros(2, 3)]).shape == (2, 2, 3)
    assert default_collate([np.ones(2, np.int16), np.zeros(2, np.int16)]).dtype is tl.int16
    assert default_collate([1, 2, 3]).dtype is tl.int64
    assert default_collate([True, False]).dtype is tl.bool
    assert default_collate([0.5, 1.5]).dtype is tl.float64
    assert default_collate([np.float32(1), np.float32(2)]).dtype is tl.float32
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]


def test_containers_stay_containers() -> None:
    pair = default_collate([(1, "a"), (2, "b")])
    assert type(pair) is list
    assert pair[0].tolist() == [1, 2]
    assert pair[1] == ("a", "b")
    point = default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert type(point) is Point
    assert point.x.tolist() == [1, 3]
    ordered = default_collate([OrderedDict(b=1, a=[1, 2]), OrderedDict(b=2, a=[3, 4])])
    assert type(ordered) is OrderedDict
    assert list(ordered) == ["b", "a"]
    assert [column.tolist() for column in ordered["a"]] == [[1, 3], [2, 4]]


def test_values_that_cannot_be_collated_are_refused() -> None:
    with pytest.raises(
        TypeError, match=r"batch must contain tensors, numpy arrays, numbers, dicts or lists; found .*object"
    ):
        default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(ShapeError, match="each element in list of batch should be of equal size"):
        default_collate([[1, 2], [1]])
    with pytest.raises(ShapeError):
        default_collate([tl.ones(2), tl.ones(3)])


@pytest.mark.cpu("shares memory with NumPy")
def test_convert_makes_tensors_of_arrays_alone() -> None:
    array = np.arange(3)
    converted = default_convert({"a": array, "b": [np.float32(1), "x"], "c": (array, None), "d": 7})
    assert converted["a"].numpy() is array
    assert converted["b"][0].dtype is tl.float32
    assert converted["b"][1] == "x"
    assert type(converted["c"]) is list
    assert converted["d"] == 7
    words = np.array(["a", "b"])
    assert default_convert(words) is words
    assert type(default_convert(Point(array, 1))) is Point

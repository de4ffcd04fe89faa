"""DataLoader in one process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tallow as tl
from tallow.data import BatchSampler, DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from tallow.errors import ArgumentError, ArgumentTypeError


class Count(IterableDataset[int]):
    def __init__(self, n: int, says: int | None = None) -> None:
        self.n = n
        self.says = n if says is None else says

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.says


def lists(loader: DataLoader[Any]) -> list[Any]:
    return [batch.tolist() for batch in loader]


def test_batches_come_in_order() -> None:
    assert lists(DataLoader(range(7), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(DataLoader(range(7), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert lists(DataLoader(range(2))) == [[0], [1]]
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]
    assert lists(DataLoader([])) == []


@pytest.mark.parametrize(
    ("n", "size", "drop", "length"), [(7, 3, False, 3), (7, 3, True, 2), (6, 3, True, 2), (0, 2, False, 0)]
)
def test_the_length_is_that_of_the_batches(n: int, size: int, drop: bool, length: int) -> None:
    for dataset in (range(n), Count(n)):
        loader = DataLoader(dataset, batch_size=size, drop_last=drop)
        assert len(loader) == length
        assert len(list(loader)) == length
    assert len(DataLoader(Count(n), batch_size=None)) == n


def test_shuffling_takes_each_sample_once_and_is_new_each_time() -> None:
    loader = DataLoader(TensorDataset(tl.arange(60)), batch_size=7, shuffle=True)
    first, second = ([x for (batch,) in loader for x in batch.tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(60))
    assert first != second


def test_a_saved_generator_resumes_the_epoch() -> None:
    generator = tl.Generator().manual_seed(2)
    loader = DataLoader(range(40), batch_size=8, shuffle=True, generator=generator)
    lists(loader)
    state = generator.get_state()
    epoch = lists(loader)
    generator.set_state(state)
    assert lists(loader) == epoch


def test_samplers_choose_the_order_and_the_batches() -> None:
    assert lists(DataLoader(range(9), sampler=[4, 2, 8], batch_size=2)) == [[4, 2], [8]]
    loader = DataLoader(range(9), batch_sampler=[[1, 2], [3]])
    assert lists(loader) == [[1, 2], [3]]
    assert loader.batch_size is None
    rows = TensorDataset(tl.arange(9) * 10)
    at_once = DataLoader(rows, batch_size=None, sampler=BatchSampler([4, 2, 8], 2, False))
    assert [x.tolist() for (x,) in at_once] == [[40, 20], [80]]
    from_tensor = DataLoader(rows, batch_size=2, sampler=tl.tensor([8, 0, 1]))
    assert [x.tolist() for (x,) in from_tensor] == [[80, 0], [10]]


def test_keys_need_not_be_integers() -> None:
    class Words(Dataset[int]):
        def __getitem__(self, word: str) -> int:
            return len(word)

    assert lists(DataLoader(Words(), sampler=["a", "abc"], batch_size=2)) == [[1, 3]]


def test_a_collate_function_gets_a_list_it_may_change() -> None:
    def sorted_down(samples: list[Any]) -> list[float]:
        assert type(samples) is list
        samples.sort(key=lambda sample: -sample[0].item())
        return [x.item() for (x,) in samples]

    loader = DataLoader(TensorDataset(tl.arange(4)), batch_size=4, collate_fn=sorted_down)
    assert list(loader) == [[3, 2, 1, 0]]


def test_getitems_is_used_for_batches() -> None:
    class Rows(Dataset[int]):
        def __init__(self) -> None:
            self.asked: list[list[int]] = []

        def __getitems__(self, indices: list[int]) -> list[int]:
            self.asked.append(indices)
            return indices

        def __len__(self) -> int:
            return 5

    rows = Rows()
    assert lists(DataLoader(rows, batch_size=3)) == [[0, 1, 2], [3, 4]]
    assert rows.asked == [[0, 1, 2], [3, 4]]


def test_iterable_datasets_are_cut_into_batches() -> None:
    assert lists(DataLoader(Count(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Count(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(3), batch_size=None)) == [0, 1, 2]
    loader = DataLoader(Count(4), batch_size=2)
    assert lists(loader) == lists(loader) == [[0, 1], [2, 3]]


def test_an_iterable_dataset_that_gives_more_than_it_said_is_noticed() -> None:
    loader = DataLoader(Count(5, says=2))
    assert len(lists(loader)) == 5  # the length was never requested
    assert len(loader) == 2
    iterator = iter(loader)
    assert [next(iterator).item(), next(iterator).item()] == [0, 1]
    with pytest.warns(UserWarning, match="reported to be 2, but 3 batches"):
        next(iterator)


def test_no_worker_info_in_the_main_process() -> None:
    assert get_worker_info() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"num_workers": 1, "prefetch_factor": -2}, "prefetch_factor option should be positive"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [0], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[0]], "shuffle": True}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[0]], "sampler": [0]}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
        ({"batch_size": 0}, "batch_size should be a positive integer"),
        ({"multiprocessing_context": "fork"}, "can only be used with multi-process loading"),
    ],
)
def test_options_that_exclude_each_other_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataLoader(range(3), **arguments)


@pytest.mark.parametrize("arguments", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}])
def test_an_iterable_dataset_has_an_order_of_its_own(arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=f"expected unspecified {name} option"):
        DataLoader(Count(3), **arguments)
    assert lists(DataLoader(Count(1), shuffle=False)) == [[0]]


def test_an_empty_dataset_cannot_be_shuffled() -> None:
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        DataLoader([], shuffle=True)


def test_options_cannot_change() -> None:
    loader = DataLoader(range(3))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)
    loader.collate_fn = list
    assert list(loader) == [[0], [1], [2]]


def test_a_timeout_is_for_workers() -> None:
    with pytest.raises(ArgumentError, match="needs num_workers > 0"):
        iter(DataLoader(range(3), timeout=1))


def test_an_iterator_is_not_pickled() -> None:
    with pytest.raises(ArgumentTypeError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader(range(3))))


@pytest.mark.parametrize("make", [lambda: iter(DataLoader(range(5), batch_size=2)), lambda: DataLoader(range(5), 2)])
def test_loaders_and_their_iterators_have_a_length(make: Callable[[], Any]) -> None:
    assert len(make()) == 3


def test_without_processes_workers_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallow.data.dataloader.HAS_PROCESSES", False)
    loader = DataLoader(range(4), batch_size=2, num_workers=64, persistent_workers=True, timeout=3)
    with pytest.warns(UserWarning, match="num_workers=64 counts as 0"):
        assert lists(loader) == [[0, 1], [2, 3]]


def test_import_by_the_pytorch_name() -> None:
    assert tl.utils.data.DataLoader is DataLoader
    assert tl.utils.data.dataset.TensorDataset is TensorDataset

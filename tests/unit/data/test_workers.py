"""DataLoader with worker processes: the same batches, and errors instead of hangs, whatever happens to a worker."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from tallow.errors import ArgumentError, ArgumentTypeError, WorkerError

pytestmark = [
    pytest.mark.native,
    pytest.mark.cpu("processes that are forked cannot use CUDA"),
    # Python 3.12 and later warn of every fork in a process with threads, and NumPy starts some.
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
FORK = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
LARGE = 2**20  # size in bytes above which arrays are sent through shared memory


class Rows(Dataset[Any]):
    """A dataset whose samples come from a function of the index, which runs in the worker."""

    def __init__(self, n: int, sample: Callable[[int], Any]) -> None:
        self.n = n
        self.sample = sample

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)

    def __len__(self) -> int:
        return self.n


class Count(IterableDataset[int]):
    """Yields 0 to n - 1; each worker takes every num_workers-th."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))


def load(dataset: Any, **options: Any) -> DataLoader[Any]:
    """Return a loader with forked workers, which need not import the classes of this file."""
    return DataLoader(dataset, **{"num_workers": 2, "multiprocessing_context": "fork", "timeout": 60, **options})


def lists(loader: DataLoader[Any]) -> list[Any]:
    return [batch.tolist() for batch in loader]


def pids(loader: DataLoader[Any]) -> list[int]:
    return [batch[0].item() for batch in loader]


@FORK
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_batches_are_the_same_and_in_order(workers: int, prefetch: int) -> None:
    def slow_at_first(index: int) -> int:
        time.sleep(0.02 if index < 4 else 0)
        return index * 10

    loader = load(Rows(11, slow_at_first), batch_size=2, num_workers=workers, prefetch_factor=prefetch)
    assert lists(loader) == [[0, 10], [20, 30], [40, 50], [60, 70], [80, 90], [100]]


@FORK
def test_a_seed_gives_the_same_order_with_and_without_workers() -> None:
    def order(workers: int) -> list[Any]:
        options = (
            {"num_workers": workers} if workers else {"num_workers": 0, "multiprocessing_context": None, "timeout": 0}
        )
        return lists(load(range(20), batch_size=3, shuffle=True, generator=tl.Generator().manual_seed(1), **options))

    assert order(0) == order(2) == order(3)


@FORK
@pytest.mark.parametrize("size", [1, 1000, LARGE, 3 * LARGE + 5])
def test_arrays_arrive_whole_and_can_be_written(size: int) -> None:
    def sample(index: int) -> Any:
        return {"x": np.full(size, index, np.uint8), "y": tl.full((3,), index + 0.5), "empty": tl.zeros(0, 4)}

    for index, batch in enumerate(load(Rows(3, sample))):
        assert batch["x"].shape == (1, size)
        assert batch["x"].dtype is tl.uint8
        assert (batch["x"].numpy() == index).all()
        assert batch["y"].tolist() == [[index + 0.5] * 3]
        assert batch["empty"].shape == (1, 0, 4)
        batch["x"] += 1
        assert (batch["x"].numpy() == index + 1).all()


@FORK
@pytest.mark.parametrize("size", [9, LARGE])
def test_a_dataset_may_use_its_memory_again(size: int) -> None:
    memory = np.zeros(size, np.uint8)

    def sample(index: int) -> Any:
        memory[:] = index
        return memory

    batches = load(Rows(20, sample), batch_size=None, num_workers=1, prefetch_factor=20)
    assert [int(batch.numpy().max()) for batch in batches] == list(range(20))


@FORK
def test_large_batches_leave_no_open_files() -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0

    before = open_files()
    for batch in load(Rows(20, lambda index: np.zeros(LARGE, np.uint8))):
        del batch
    assert open_files() == before


@FORK
def test_iterable_datasets_are_shared_out() -> None:
    assert sorted(x for batch in lists(load(Count(11), batch_size=2)) for x in batch) == list(range(11))
    assert lists(load(Count(5), batch_size=2)) == [[0, 2], [1, 3], [4]]
    assert list(load(Count(5), batch_size=None)) == [0, 1, 2, 3, 4]
    assert lists(load(Count(1), batch_size=2, num_workers=3)) == [[0]]


@FORK
def test_no_sample_is_mistaken_for_the_end() -> None:
    class Words(IterableDataset[str]):
        def __iter__(self) -> Iterator[str]:
            return iter(["ended", "restart", ""])

    assert list(load(Words(), batch_size=None, num_workers=1)) == ["ended", "restart", ""]


@FORK
def test_worker_info() -> None:
    def who(index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        assert isinstance(info.dataset, Rows)
        return [info.id, info.num_workers, info.seed - info.id]

    numbers = [batch[0].tolist() for batch in load(Rows(4, lambda index: tl.tensor(who(index))))]
    assert [id for id, _, _ in numbers] == [0, 1, 0, 1]
    assert {(count, base) for _, count, base in numbers} == {(2, numbers[0][2])}
    assert get_worker_info() is None


@FORK
def test_each_worker_has_random_numbers_of_its_own_that_a_seed_repeats() -> None:
    def random_sample(index: int) -> Any:
        return tl.tensor([random.random(), tl.rand(1).item(), np.random.rand()], dtype=tl.float64)

    def epoch() -> list[Any]:
        return [batch[0].tolist() for batch in load(Rows(2, random_sample), generator=tl.Generator().manual_seed(3))]

    first, second = epoch()
    assert not set(first) & set(second)
    assert epoch() == [first, second]


@FORK
def test_worker_init_fn_runs_first_in_each_worker() -> None:
    def init(id: int) -> None:
        info = get_worker_info()
        assert info is not None
        info.dataset.start = 100 * id

    class Started(Rows):
        start = -1

        def __getitem__(self, index: int) -> int:
            return self.start + index

    assert lists(load(Started(4, int), worker_init_fn=init)) == [[0], [101], [2], [103]]


@FORK
def test_persistent_workers_stay() -> None:
    dataset = Rows(4, lambda index: os.getpid())
    loader = load(dataset, persistent_workers=True)
    assert pids(loader) == pids(loader)
    assert set(pids(load(dataset))).isdisjoint(pids(loader))


@FORK
def test_an_epoch_that_was_left_early_does_not_leak_into_the_next() -> None:
    for dataset, expected in ((range(10), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]), (Count(4), [[0, 2], [1, 3]])):
        loader = load(dataset, batch_size=2, persistent_workers=True)
        for _ in range(2):
            assert next(iter(loader)).tolist() == expected[0]
        assert lists(loader) == expected
        assert lists(loader) == expected


@FORK
def test_out_of_order_yields_ready_batches_first() -> None:
    def slow_at_first(index: int) -> int:
        time.sleep(0.5 if index == 0 else 0)
        return index

    loader = load(Rows(6, slow_at_first), in_order=False)
    order = [batch.item() for batch in loader]
    assert sorted(order) == list(range(6))
    assert order[0] != 0


# ----------------------------------------------------------------------------------------------------------- errors


class TwoArguments(Exception):
    def __init__(self, first: Any, second: Any) -> None:
        super().__init__(first, second)


@FORK
@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("seven"), ValueError), (KeyError("seven"), KeyError), (TwoArguments(1, 2), WorkerError)],
)
def test_an_error_in_a_worker_comes_back_with_its_traceback(error: Exception, kind: type[Exception]) -> None:
    def fail_at_seven(index: int) -> int:
        if index == 3:
            raise error
        return index

    iterator = iter(load(Rows(5, fail_at_seven)))
    assert [next(iterator).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(kind) as caught:
        next(iterator)
    assert f"Caught {type(error).__name__} in DataLoader worker process 1.\nOriginal Traceback" in str(caught.value)
    assert "in fail_at_seven" in str(caught.value)
    assert next(iterator).item() == 4  # one bad sample does not end the iteration


@FORK
def test_an_error_of_a_class_that_cannot_be_sent_is_a_worker_error() -> None:
    class Local(Exception):
        pass

    def fail(index: int) -> int:
        raise Local("odd")

    with pytest.raises(WorkerError, match="Caught Local in DataLoader worker process 0"):
        lists(load(Rows(1, fail)))


@FORK
def test_a_batch_that_cannot_be_sent_is_an_error() -> None:
    with pytest.raises(Exception, match=r"(?s)Caught \w+ in DataLoader worker process 0.*[Pp]ickle"):
        list(load(Rows(1, lambda index: lambda: None), collate_fn=list))


@FORK
def test_an_error_in_worker_init_fn_comes_back() -> None:
    def init(id: int) -> None:
        raise ValueError("no such shard")

    with pytest.raises(ValueError, match="no such shard"):
        lists(load(range(4), worker_init_fn=init))


@FORK
@pytest.mark.parametrize("persistent", [False, True])
def test_a_worker_that_is_killed_is_an_error_at_once(persistent: bool) -> None:
    def die(index: int) -> int:
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return index

    loader = load(Rows(8, die), timeout=0, persistent_workers=persistent)
    seen = []
    with pytest.raises(WorkerError, match=r"DataLoader worker \(pid \d+\) exited unexpectedly, with exit code -9"):
        seen.extend(batch.item() for batch in loader)
    assert seen == list(range(len(seen)))
    with pytest.raises(WorkerError):  # a new iteration has new workers
        lists(loader)


@FORK
def test_a_worker_that_is_killed_in_the_middle_of_a_message_is_an_error() -> None:
    loader = load(Rows(8, lambda index: np.zeros(LARGE // 2, np.uint8)), timeout=0, num_workers=1)
    iterator: Any = iter(loader)
    next(iterator)
    os.kill(iterator._workers[0].process.pid, signal.SIGKILL)  # the next batch is half written to the pipe
    with pytest.raises(WorkerError, match="exited unexpectedly"):
        list(iterator)
    assert list(iterator) == []


@FORK
def test_a_worker_that_takes_too_long_is_an_error() -> None:
    started = time.monotonic()
    with pytest.raises(WorkerError, match=r"timed out after 0\.2 seconds"):
        lists(load(Rows(2, lambda index: time.sleep(60)), timeout=0.2))
    assert time.monotonic() - started < 30  # it was not waited for


FEW_FILES = """
import resource
import tallow as tl

class Large(tl.data.Dataset):
    def __getitem__(self, index):
        return tl.zeros(2**18)
    def __len__(self):
        return 100

resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
kept = list(tl.data.DataLoader(Large(), num_workers=1, multiprocessing_context="fork"))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info >= (3, 13), reason="only there do mapped files count as open"
)
def test_batches_that_cannot_be_mapped_are_an_error() -> None:
    process = subprocess.run([sys.executable, "-c", FEW_FILES], capture_output=True, text=True)
    assert "WorkerError: a batch of 1048576 bytes cannot be mapped" in process.stderr


def test_unpicklable_datasets_are_an_error() -> None:
    loader = DataLoader(Rows(3, lambda index: index), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(ArgumentTypeError, match="cannot be sent to a worker process") as caught:
        iter(loader)
    assert "top level of a module" in str(caught.value)


def test_a_start_method_must_exist() -> None:
    with pytest.raises(ArgumentError, match="valid start method"):
        DataLoader(range(3), num_workers=1, multiprocessing_context="frok")
    with pytest.raises(ArgumentTypeError, match="got int"):
        DataLoader(range(3), num_workers=1, multiprocessing_context=3)


def test_many_workers_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="will create 100000 worker processes"):
        DataLoader(range(3), num_workers=100_000)


def test_workers_start_by_spawning_too() -> None:
    loader = DataLoader(TensorDataset(tl.arange(4)), num_workers=1, multiprocessing_context="spawn", timeout=60)
    assert [x.tolist() for (x,) in loader] == [[0], [1], [2], [3]]


# -------------------------------------------------------------------------------------------------------- no orphans

SCRIPT = r"""
import os, signal, sys, time
import tallow as tl

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with it ignored

class Slow(tl.data.Dataset):
    def __getitem__(self, index):
        os.write(1, b"pid %d\n" % os.getpid())
        time.sleep(0.01 if index < 10 else 3600)
        return index
    def __len__(self):
        return 1000

loader = tl.data.DataLoader(Slow(), num_workers=2, multiprocessing_context="fork", persistent_workers=True)
iterator = iter(loader)
first = next(iterator)
os.write(1, b"pid %d ready\n" % os.getpid())
"""


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _run_until_ready(then: str) -> tuple[subprocess.Popen[str], set[int]]:
    """Start a process with two workers and return the ids of all three."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT + then],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    pids = set()
    for line in process.stdout:
        pids.add(int(line.split()[1]))
        if "ready" in line:
            break
    return process, pids


def _wait_for_end(pids: set[int]) -> None:
    deadline = time.monotonic() + 30
    while any(map(_alive, pids)):
        assert time.monotonic() < deadline, f"still alive: {[pid for pid in pids if _alive(pid)]}"
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
@pytest.mark.parametrize(
    "then",
    [
        "",
        "list(zip(range(9), iterator)); time.sleep(0.5)",
        "del iterator, loader",
        "raise SystemExit(3)",
        "os._exit(0)",
    ],
)
def test_workers_end_with_their_parent(then: str) -> None:
    process, pids = _run_until_ready(then)
    process.communicate(timeout=60)
    assert len(pids) >= 2
    _wait_for_end(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
@pytest.mark.parametrize("to_all", [True, False], ids=["the terminal's group", "the parent"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_when_their_parent_is_stopped(number: int, to_all: bool) -> None:
    process, pids = _run_until_ready("for batch in iterator: pass")
    if to_all:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    _wait_for_end(pids)
    if number == signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1, errors  # the parent's only
        assert "tallow/data/worker.py" not in errors

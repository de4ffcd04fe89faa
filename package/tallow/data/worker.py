"""The code that runs in a worker process of a `DataLoader`.

It receives messages and sends one answer per task, in order, until it is told to stop or its parent ends:

    Task(index)    the batch of these indices, `Ended` if the iterable dataset is exhausted, or `Failed`
    Restart()      no answer; an iterable dataset starts over
    None           no answer; the worker stops
"""

from __future__ import annotations

import os
import queue
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tallow.data import transfer
from tallow.data.dataset import IterableDataset
from tallow.data.fetch import Plan
from tallow.data.worker_info import WorkerInfo, set_worker_info
from tallow.errors import WorkerError
from tallow.random import manual_seed

PARENT_CHECK_S = 2.0  # interval at which a worker checks that its parent is alive


class Task(NamedTuple):
    """The indices of a batch to load."""

    index: Any


class Restart(NamedTuple):
    """A new epoch."""


class Ended(NamedTuple):
    """The end of an iterable dataset."""


class Failed(NamedTuple):
    """An exception in a worker, with its traceback as text."""

    kind: type[BaseException]
    text: str

    @classmethod
    def of(cls, error: BaseException, worker: int) -> Failed:
        """Return the failure for an exception in worker number `worker`."""
        trace = "".join(traceback.format_exception(error))
        kind = type(error)
        return cls(kind, f"Caught {kind.__name__} in DataLoader worker process {worker}.\nOriginal {trace}")

    def reraise(self) -> NoReturn:
        """Raise the exception again, with the worker's traceback in its message."""
        text = _Verbatim(self.text) if issubclass(self.kind, KeyError) else self.text
        try:
            error = self.kind(text)
        except Exception:  # its constructor does not take a message
            raise WorkerError(self.text) from None
        raise error


class _Verbatim(str):
    """Message of a KeyError, which prints the `repr` of its message: that would put a traceback on one line."""

    def __repr__(self) -> str:
        return self


def run(
    plan: Plan,
    id: int,
    num_workers: int,
    base_seed: int,
    init: Callable[[int], object] | None,
    connection: Connection,
    stopping: Any,
) -> None:
    """Serve `connection` until the parent sends stop, sets the shared flag `stopping`, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent stops its workers
    _seed(base_seed, id)
    set_worker_info(WorkerInfo(id, num_workers, base_seed + id, plan.dataset))
    outbox: queue.SimpleQueue[transfer.Packed] = queue.SimpleQueue()
    # A thread sends, so that the next batch is loaded while the last one waits in the pipe.
    threading.Thread(target=_send_all, args=(outbox, connection), daemon=True).start()
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    answer = _answerer(plan, id, init)
    while (message := _receive(connection)) is not None and not stopping.value:
        if isinstance(message, Task):
            outbox.put(_pack(answer(message.index), id))
        else:
            answer = _answerer(plan, id, None)


def _answerer(plan: Plan, id: int, init: Callable[[int], object] | None) -> Callable[[Any], Any]:
    """Return a function from an index to the answer."""
    try:
        if init is not None:
            init(id)
        fetch = plan.fetcher()
    except Exception as error:
        failed = Failed.of(error, id)
        return lambda index: failed

    def answer(index: Any) -> Any:
        try:
            return fetch(index)
        except Exception as error:
            if isinstance(error, StopIteration) and isinstance(plan.dataset, IterableDataset):
                return Ended()
            return Failed.of(error, id)

    return answer


def _pack(answer: Any, id: int) -> transfer.Packed:
    try:
        return transfer.pack(answer)
    except Exception as error:
        if isinstance(answer, Failed):  # its class cannot be pickled
            return transfer.pack(Failed(WorkerError, answer.text))
        return _pack(Failed.of(error, id), id)


def _receive(connection: Connection) -> Any:
    try:
        return connection.recv()
    except (EOFError, OSError):
        return None


def _exit_with_parent(parent: int) -> None:
    """End this process when its parent ends. The pipe does not show that: other processes may keep it open."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    os._exit(1)


def _send_all(outbox: queue.SimpleQueue[transfer.Packed], connection: Connection) -> None:
    while True:
        try:
            transfer.send(connection, outbox.get())
        except OSError:  # the parent has closed the connection
            return


def _seed(base_seed: int, id: int) -> None:
    random.seed(base_seed + id)
    manual_seed(base_seed + id)
    np.random.seed(np.random.SeedSequence([id, base_seed]).generate_state(4))

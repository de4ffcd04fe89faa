"""Loading in worker processes: the iterator of a `DataLoader` with workers, and their birth and death.

Each worker has a pipe of its own, so that one that is killed in the middle of a message harms no other, and is noticed
at once. Tasks are dealt to the workers in turn and each answers in order, so the next batch is always the next answer
of the worker whose turn it is.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from tallow.data import transfer, worker
from tallow.data.iterator import LoaderIterator
from tallow.errors import ArgumentTypeError, WorkerError

if TYPE_CHECKING:
    from tallow.data.dataloader import DataLoader

GRACE_S = 2.0  # for a worker to finish its batch before it is terminated


@dataclass(eq=False, slots=True)
class Worker:
    """A worker process, seen from its parent.

    Attributes:
        tasks: how many it has not answered yet.
        ended: it has said that its iterable dataset has no more.
    """

    process: Any  # the classes of start methods have no common base
    connection: Connection
    tasks: int = 0
    ended: bool = False


class ProcessIterator(LoaderIterator):
    """Iterates over a `DataLoader` with num_workers > 0."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        assert loader.prefetch_factor is not None
        self._prefetch = loader.prefetch_factor * loader.num_workers
        self._timeout = loader.timeout or None
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._stopping = context.RawValue("b", 0)  # an Event has a lock, which a worker that is killed could keep
        self._workers: list[Worker] = []
        self._stop = weakref.finalize(self, _stop, self._workers, self._stopping, os.getpid())
        try:
            for id in range(loader.num_workers):
                self._workers.append(_start(context, loader, id, self._base_seed, self._stopping))
        except BaseException:
            self._stop()
            raise
        self._begin()

    @property
    def alive(self) -> bool:
        """Whether there are workers still, so that it can `restart`."""
        return self._stop.alive

    def restart(self) -> None:
        """Begin another epoch with the same workers."""
        super().restart()
        for one in self._workers:
            while one.tasks:  # of an epoch that was left early
                self._receive(one)
            one.ended = False
            _send(one, worker.Restart())
        self._begin()

    def _begin(self) -> None:
        self._turns = cycle(self._workers)
        self._owners: deque[Worker] = deque()  # of the tasks that are not answered, oldest first
        for _ in range(self._prefetch):
            self._assign()

    def _assign(self) -> None:
        """Give the next task to the next worker, if there is one of each."""
        if all(one.ended for one in self._workers):
            return
        try:
            task = worker.Task(next(self._indices))
        except StopIteration:
            return
        one = next(one for one in self._turns if not one.ended)
        self._owners.append(one)
        one.tasks += 1
        _send(one, task)

    def _next(self) -> Any:
        while self._owners:
            one = self._owners[0] if self._in_order else self._first_ready()
            self._owners.remove(one)
            answer = self._receive(one)
            one.ended |= isinstance(answer, worker.Ended)
            self._assign()
            if isinstance(answer, worker.Failed):
                answer.reraise()
            if not isinstance(answer, worker.Ended):
                return answer
        if not self._persistent:
            self._stop()
        raise StopIteration

    def _first_ready(self) -> Worker:
        """Of the workers with tasks, one that has answered or died; the oldest task's, if none does in time."""
        owners = {waited: one for one in self._owners for waited in (one.connection, one.process.sentinel)}
        ready = wait(owners, self._timeout)
        return owners[ready[0]] if ready else self._owners[0]

    def _receive(self, one: Worker) -> Any:
        one.tasks -= 1
        try:
            ready = wait([one.connection, one.process.sentinel], self._timeout)
            if not ready:
                raise WorkerError(
                    f"DataLoader timed out after {self._timeout} seconds", mend="raise timeout, or load smaller batches"
                )
            if one.connection in ready or one.connection.poll():
                return transfer.receive(one.connection)
            raise EOFError
        except (EOFError, OSError) as error:
            died = _died(one)
            self._give_up()
            raise died from error
        except BaseException:  # such as Ctrl-C, maybe in the middle of a message
            self._give_up()
            raise

    def _give_up(self) -> None:
        self._owners.clear()
        self._stop()


def _start(context: Any, loader: DataLoader[Any], id: int, base_seed: int, stopping: Any) -> Worker:
    ours, theirs = context.Pipe()
    process = context.Process(
        target=worker.run,
        args=(loader.plan, id, loader.num_workers, base_seed, loader.worker_init_fn, theirs, stopping),
        name=f"tallow-data-{id}",
        daemon=True,
    )
    try:
        process.start()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        ours.close()
        raise ArgumentTypeError(
            f"DataLoader: the dataset, collate_fn or worker_init_fn cannot be sent to a worker process: {error}",
            mend="define functions and classes at the top level of a module, and open files in __getitem__; or, on "
            "Linux, pass multiprocessing_context='fork'",
        ) from error
    finally:
        theirs.close()
    return Worker(process, ours)


def _send(one: Worker, message: Any) -> None:
    with suppress(OSError):  # if it has died, that is reported when it is asked for its answer
        one.connection.send(message)


def _died(one: Worker) -> WorkerError:
    one.process.join(GRACE_S)
    return WorkerError(
        f"DataLoader worker (pid {one.process.pid}) exited unexpectedly, with exit code {one.process.exitcode}",
        mend="it may have printed why; a negative code is a signal, and -9 often means that memory ran out",
    )


def _stop(workers: list[Worker], stopping: Any, parent: int) -> None:
    """End the workers: each after the batch it is at, or `GRACE_S` later whatever it is doing."""
    if os.getpid() != parent:  # a process forked from it has let go of its copy of the iterator
        return
    stopping.value = 1
    for one in workers:
        with suppress(OSError):  # if it has died, or has so many tasks that the pipe is full: then it sees the flag
            if os.name == "posix":
                os.set_blocking(one.connection.fileno(), False)
            one.connection.send(None)
        one.connection.close()
    deadline = time.monotonic() + GRACE_S
    for one in workers:
        one.process.join(max(0.0, deadline - time.monotonic()))
    for one in workers:
        if one.process.is_alive():
            one.process.kill()
        one.process.join()
        one.process.close()

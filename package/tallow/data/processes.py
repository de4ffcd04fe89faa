"""Load batches in worker processes: the iterator of a `DataLoader` with workers, and their start and end.

Each worker has its own pipe, so a worker killed in the middle of a message affects no other, and is detected at once.
Tasks are assigned to the workers in turn and each answers in order, so the next batch is always the next answer of the
worker whose turn it is.
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

GRACE_S = 2.0  # time for a worker to finish its batch before it is killed


@dataclass(eq=False, slots=True)
class Worker:
    """The parent's handle of a worker process.

    Attributes:
        tasks: number of unanswered tasks.
        is_exhausted: whether its iterable dataset is exhausted.
    """

    process: Any  # the process classes of start methods have no common base
    connection: Connection
    tasks: int = 0
    is_exhausted: bool = False


class ProcessIterator(LoaderIterator):
    """Iterator over a `DataLoader` with num_workers > 0."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        assert loader.prefetch_factor is not None
        self._prefetch = loader.prefetch_factor * loader.num_workers
        self._timeout = loader.timeout or None
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._stopping = context.RawValue("b", 0)  # not an Event: a killed worker could hold its lock
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
        """Return whether the workers are running, so that `restart` is possible."""
        return self._stop.alive

    def restart(self) -> None:
        """Start another epoch with the same workers."""
        super().restart()
        for peer in self._workers:
            while peer.tasks:  # of an epoch that was not finished
                self._receive(peer)
            peer.is_exhausted = False
            _send(peer, worker.Restart())
        self._begin()

    def _begin(self) -> None:
        self._turns = cycle(self._workers)
        self._owners: deque[Worker] = deque()  # workers of the unanswered tasks, oldest first
        for _ in range(self._prefetch):
            self._assign()

    def _assign(self) -> None:
        """Give the next task to the next worker, if both exist."""
        if all(peer.is_exhausted for peer in self._workers):
            return
        try:
            task = worker.Task(next(self._indices))
        except StopIteration:
            return
        peer = next(peer for peer in self._turns if not peer.is_exhausted)
        self._owners.append(peer)
        peer.tasks += 1
        _send(peer, task)

    def _next(self) -> Any:
        while self._owners:
            peer = self._owners[0] if self._in_order else self._first_ready()
            self._owners.remove(peer)
            answer = self._receive(peer)
            peer.is_exhausted |= isinstance(answer, worker.Ended)
            self._assign()
            if isinstance(answer, worker.Failed):
                answer.reraise()
            if not isinstance(answer, worker.Ended):
                return answer
        if not self._persistent:
            self._stop()
        raise StopIteration

    def _first_ready(self) -> Worker:
        """Return a worker with tasks that has answered or died, or the oldest task's worker after the timeout."""
        owners = {event: peer for peer in self._owners for event in (peer.connection, peer.process.sentinel)}
        ready = wait(owners, self._timeout)
        return owners[ready[0]] if ready else self._owners[0]

    def _receive(self, peer: Worker) -> Any:
        peer.tasks -= 1
        try:
            ready = wait([peer.connection, peer.process.sentinel], self._timeout)
            if not ready:
                raise WorkerError(
                    f"DataLoader timed out after {self._timeout} seconds",
                    hint="increase timeout, or load smaller batches",
                )
            if peer.connection in ready or peer.connection.poll():
                return transfer.receive(peer.connection)
            raise EOFError
        except (EOFError, OSError) as error:
            death = _death_of(peer)
            self._abort()
            raise death from error
        except BaseException:  # such as Ctrl-C, possibly in the middle of a message
            self._abort()
            raise

    def _abort(self) -> None:
        self._owners.clear()
        self._stop()


def _start(context: Any, loader: DataLoader[Any], id: int, base_seed: int, stopping: Any) -> Worker:
    parent_end, worker_end = context.Pipe()
    process = context.Process(
        target=worker.run,
        args=(loader.plan, id, loader.num_workers, base_seed, loader.worker_init_fn, worker_end, stopping),
        name=f"tallow-data-{id}",
        daemon=True,
    )
    try:
        process.start()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        parent_end.close()
        raise ArgumentTypeError(
            f"DataLoader: the dataset, collate_fn or worker_init_fn cannot be sent to a worker process: {error}",
            hint="define functions and classes at the top level of a module, and open files in __getitem__; or, on "
            "Linux, pass multiprocessing_context='fork'",
        ) from error
    finally:
        worker_end.close()
    return Worker(process, parent_end)


def _send(peer: Worker, message: Any) -> None:
    with suppress(OSError):  # if the worker has died, `_receive` reports it
        peer.connection.send(message)


def _death_of(peer: Worker) -> WorkerError:
    peer.process.join(GRACE_S)
    return WorkerError(
        f"DataLoader worker (pid {peer.process.pid}) exited unexpectedly, with exit code {peer.process.exitcode}",
        hint="look for its own messages; a negative code is a signal, and -9 often means out of memory",
    )


def _stop(workers: list[Worker], stopping: Any, parent: int) -> None:
    """End the workers: each after its current batch, or killed after `GRACE_S`."""
    if os.getpid() != parent:  # a forked process has freed its copy of the iterator
        return
    stopping.value = 1
    for peer in workers:
        with suppress(OSError):  # if the worker has died, or its pipe is full of tasks: then it sees the flag
            if os.name == "posix":
                os.set_blocking(peer.connection.fileno(), False)
            peer.connection.send(None)
        peer.connection.close()
    deadline = time.monotonic() + GRACE_S
    for peer in workers:
        peer.process.join(max(0.0, deadline - time.monotonic()))
    for peer in workers:
        if peer.process.is_alive():
            peer.process.kill()
        peer.process.join()
        peer.process.close()

"""Threads that answer requests."""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tallow.serving.queue import Closed, WaitingLine

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Job(Generic[T, R]):
    """A request and its future result.

    Args:  client: who sent the request
    """

    request: T
    client: str = ""
    result: Future[R] = field(default_factory=Future)


class Worker(ABC, Generic[T, R]):
    """Answers requests in threads; clients take turns.

    Args:
        name: by which clients ask for the model.
        queue: how many requests of a client may wait.
    """

    def __init__(self, name: str, *, queue: int = 128, threads: int = 1) -> None:
        self.name = name
        self.line: WaitingLine[Job[T, R]] = WaitingLine(queue, lambda job: job.client)
        self._threads = [threading.Thread(target=self._run, name=f"tallow {name}", daemon=True) for _ in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Refuse further requests, also those that wait, and wait for the threads to end."""
        for job in self.line.close():
            if job.result.set_running_or_notify_cancel():
                job.result.set_exception(Closed())
        end = time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, end - time.monotonic()))

    def submit(self, request: T, client: str = "") -> Future[R]:
        """Enqueue a request of a client.  Raises: Busy if too many wait; Closed after `stop`"""
        job: Job[T, R] = Job(request, client)
        self.line.put(job)
        return job.result

    @abstractmethod
    def _run(self) -> None:
        """Answer requests until the line is closed."""


class Threads(Worker[Callable[[], Any], Any]):
    """Calls functions in a few threads.

    Args:
        count: of the threads.
        queue: as Worker; any number where each connection has one function at most.
    """

    def __init__(self, name: str, count: int, *, queue: int = sys.maxsize) -> None:
        super().__init__(name, queue=queue, threads=count)

    def _run(self) -> None:
        while (taken := self.line.take(1, wait=True)) is not None:
            _call(taken.pop())


def _call(job: Job[Callable[[], R], R]) -> None:
    """Set the result of a function, unless nobody wants it any more."""
    if job.result.set_running_or_notify_cancel():
        try:
            job.result.set_result(job.request())
        except BaseException as error:  # it belongs to who waits for the result; the thread goes on
            job.result.set_exception(error)


class GroupWorker(Worker[T, R]):
    """Answers the requests that wait in groups, each at once.

    Args:
        queue: as Worker.
        group: how many requests to answer at once.
    """

    def __init__(self, name: str, *, queue: int = 128, group: int) -> None:
        super().__init__(name, queue=queue)
        self._group = group

    @abstractmethod
    def answer(self, requests: Sequence[T]) -> Sequence[R]:
        """Return the results of some requests."""

    def _run(self) -> None:
        while (taken := self.line.take(self._group, wait=True)) is not None:
            jobs = [job for job in taken if job.result.set_running_or_notify_cancel()]
            started = time.monotonic()
            if jobs and not self._answer(jobs) and len(jobs) > 1:
                for job in jobs:  # find the one that fails
                    self._answer([job])
            self.line.served((time.monotonic() - started) / max(1, len(jobs)))

    def _answer(self, jobs: Sequence[Job[T, R]]) -> bool:
        """Set the results of jobs; return False, with nothing set, if several fail together."""
        results: Sequence[Any]
        try:
            results = self.answer([job.request for job in jobs])
        except Exception as error:  # of the model or its input; the thread goes on
            if len(jobs) == 1:
                jobs[0].result.set_exception(error)
            return False
        for job, result in zip(jobs, results, strict=True):
            job.result.set_result(result)
        return True

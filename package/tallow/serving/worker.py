"""Threads that answer requests."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tallow.serving.queue import Closed, WaitingLine

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Job(Generic[T, R]):
    """A request and its future result."""

    request: T
    result: Future[R] = field(default_factory=Future)


class Worker(ABC, Generic[T, R]):
    """Answers requests in one thread.

    Args:
        name: by which clients ask for the model.
        queue: how many requests may wait.
    """

    def __init__(self, name: str, *, queue: int = 128) -> None:
        self.name = name
        self.line: WaitingLine[Job[T, R]] = WaitingLine(queue)
        self._thread = threading.Thread(target=self._run, name=f"tallow {name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Refuse further requests, also those that wait, and wait for the thread to end."""
        for job in self.line.close():
            if job.result.set_running_or_notify_cancel():
                job.result.set_exception(Closed())
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def submit(self, request: T) -> Future[R]:
        """Enqueue a request.  Raises: Busy if too many wait; Closed after `stop`"""
        job: Job[T, R] = Job(request)
        self.line.put(job)
        return job.result

    @abstractmethod
    def _run(self) -> None:
        """Answer requests until the line is closed."""


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

"""Handles of started operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta


class Work(ABC):
    """A started operation between processes, as torch.distributed.Work.

    Its inputs and outputs must not be used until `wait` has returned.
    """

    def __init__(self) -> None:
        self._finish: list[Callable[[], None]] = []
        self._before: Work | None = None
        self._finished = False

    def then(self, finish: Callable[[], None]) -> Work:
        """Add a function to call once when the data has arrived, before `wait` returns."""
        self._finish.append(finish)
        return self

    def after(self, other: Work) -> Work:
        """Complete only after `other`, and fail if it fails."""
        if self._before is None:
            self._before = other
        else:
            self._before.after(other)
        return self

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is complete, and return True.

        Args:  timeout: None means that of the process group

        Raises:  DistributedError after the timeout, or if a participating process has ended
        """
        if not self._finished:
            if self._before is not None:
                self._before.wait(timeout)
            self._complete(timeout)
            self._conclude()
        return True

    def is_completed(self) -> bool:
        """Return whether the operation is complete, without waiting."""
        if not self._finished and (self._before is None or self._before.is_completed()) and self._poll():
            self._conclude()
        return self._finished

    def _conclude(self) -> None:
        self._finished = True
        for finish in self._finish:
            finish()
        self._finish.clear()

    @abstractmethod
    def _poll(self) -> bool:
        """Return whether the data has arrived."""

    @abstractmethod
    def _complete(self, timeout: timedelta | None) -> None:
        """Wait until the data has arrived."""


class NoWork(Work):
    """The work of a rank that takes no part, complete at once."""

    def _poll(self) -> bool:
        return True

    def _complete(self, timeout: timedelta | None) -> None:
        pass

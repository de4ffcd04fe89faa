"""What a started operation hands out: `wait` for it, or ask whether it is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta


class Work(ABC):
    """An operation between processes that has been started, as torch.distributed.Work.

    What it reads and writes is its own until `wait` has returned.
    """

    def __init__(self) -> None:
        self._finish: list[Callable[[], None]] = []
        self._before: Work | None = None
        self._finished = False

    def then(self, finish: Callable[[], None]) -> Work:
        """Do this once as well, when the data is there and before anybody sees it."""
        self._finish.append(finish)
        return self

    def after(self, other: Work) -> Work:
        """Be done only when `other` is, and fail where it fails."""
        self._before = other
        return self

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Return True when it is done.

        Args:  timeout: None means that of the process group

        Raises:  DistributedError after the timeout, or when a process that takes part has ended
        """
        if not self._finished:
            if self._before is not None:
                self._before.wait(timeout)
            self._complete(timeout)
            self._conclude()
        return True

    def is_completed(self) -> bool:
        """Whether it is done; does not wait."""
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
        """Whether the data is there."""

    @abstractmethod
    def _complete(self, timeout: timedelta | None) -> None:
        """Return when the data is there."""

"""The line of requests that wait for a worker: bounded, by priority, then first come first served."""

from __future__ import annotations

import threading
from bisect import insort
from collections.abc import Callable
from typing import Generic, TypeVar

from tallow.errors import TallowError

T = TypeVar("T")


class Busy(TallowError, RuntimeError):
    """The line is full.

    Attributes:
        retry_after_s: when to try again.
    """

    def __init__(self, waiting: int, retry_after_s: int) -> None:
        super().__init__(f"{waiting} requests are waiting already", hint=f"try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class Closed(TallowError, RuntimeError):
    """The worker is stopping."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down", hint="try again later, or use another server")


class WaitingLine(Generic[T]):
    """A bounded queue between threads that submit requests and the one that works on them.

    Args:
        limit: the most requests that wait.
        priority: of a request; those with a smaller number leave first.
    """

    def __init__(self, limit: int, priority: Callable[[T], int] = lambda item: 0) -> None:
        self.limit = limit
        self._priority = priority
        self._items: list[tuple[int, int, T]] = []  # the priority, the number of the request, and the request
        self._count = 0
        self._changed = threading.Condition()
        self._closed = False
        self._seconds_each = 0.5  # a moving mean of the time between two requests leaving the line

    def __len__(self) -> int:
        return len(self._items)

    def put(self, *items: T) -> None:
        """Append requests, all or none.  Raises: Busy if there is no room for them, Closed after `close`"""
        with self._changed:
            self.require_room(len(items))
            for item in items:
                self._count += 1
                insort(self._items, (self._priority(item), self._count, item))
            self._changed.notify()

    def require_room(self, count: int = 1) -> None:
        """Raise Busy if there is no room for so many requests, Closed after `close`."""
        if self._closed:
            raise Closed
        if len(self._items) + count > self.limit:
            raise Busy(len(self._items), self.retry_after_s)

    def take(self, most: int, *, wait: bool) -> list[T] | None:
        """Remove and return up to `most` requests.

        Args:     wait: wait for one if there is none
        Returns:  None if the line is closed and empty
        """
        with self._changed:
            while wait and not self._items and not self._closed:
                self._changed.wait()
            if self._closed and not self._items:
                return None
            taken, self._items = self._items[:most], self._items[most:]
            return [item for _, _, item in taken]

    def remove(self, matches: Callable[[T], bool]) -> list[T]:
        """Remove and return the waiting requests that match."""
        with self._changed:
            found = [entry for entry in self._items if matches(entry[2])]
            self._items = [entry for entry in self._items if entry not in found]
            return [item for _, _, item in found]

    def close(self) -> list[T]:
        """Refuse further requests; return those that waited, which are no longer in the line."""
        with self._changed:
            self._closed = True
            rest, self._items = self._items, []
            self._changed.notify_all()
            return [item for _, _, item in rest]

    def served(self, seconds: float) -> None:
        """Take the time that a request took into account for `retry_after_s`."""
        self._seconds_each += 0.2 * (seconds - self._seconds_each)

    @property
    def retry_after_s(self) -> int:
        """The time until there is room, in whole seconds, by the speed of the last requests."""
        return max(1, min(60, round(self._seconds_each)))

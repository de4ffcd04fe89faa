"""The line of requests that wait for a worker: bounded, first come first served."""

from __future__ import annotations

import threading
from collections import deque
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

    Args:  limit: the most requests that wait
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._seconds_each = 0.5  # a moving mean of the time between two requests leaving the line

    def __len__(self) -> int:
        return len(self._items)

    def put(self, *items: T) -> None:
        """Append requests, all or none.  Raises: Busy if there is no room for them, Closed after `close`"""
        with self._changed:
            if self._closed:
                raise Closed
            if len(self._items) + len(items) > self.limit:
                raise Busy(len(self._items), self.retry_after_s)
            self._items.extend(items)
            self._changed.notify()

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
            return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def remove(self, matches: Callable[[T], bool]) -> list[T]:
        """Remove and return the waiting requests that match."""
        with self._changed:
            found = [item for item in self._items if matches(item)]
            if found:
                self._items = deque(item for item in self._items if item not in found)
            return found

    def close(self) -> list[T]:
        """Refuse further requests; return those that waited, which are no longer in the line."""
        with self._changed:
            self._closed = True
            rest = list(self._items)
            self._items.clear()
            self._changed.notify_all()
            return rest

    def served(self, seconds: float) -> None:
        """Take the time that a request took into account for `retry_after_s`."""
        self._seconds_each += 0.2 * (seconds - self._seconds_each)

    @property
    def retry_after_s(self) -> int:
        """The time until there is room, in whole seconds, by the speed of the last requests."""
        return max(1, min(60, round(self._seconds_each)))

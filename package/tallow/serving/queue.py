"""The line of requests that wait for a worker: bounded, by priority, and by turns of the clients."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from math import inf
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
    """A bounded queue between threads that submit requests and the one that works on them. Clients take turns.

    It has twice `limit` places, and a client may occupy as many as are free. So one client alone may wait with `limit`
    requests, and the first request of another finds a place.

    Args:
        limit: the most requests of a client that wait.
        client: who sent a request.
        priority: of a request; those with a smaller number leave first, whoever sent them.
    """

    def __init__(
        self, limit: int, client: Callable[[T], str] = lambda item: "", priority: Callable[[T], int] = lambda item: 0
    ) -> None:
        self.limit = limit
        self._client = client
        self._priority = priority
        # By priority, the requests of each client, in the order of their turns.
        self._waiting: dict[int, OrderedDict[str, deque[T]]] = {}
        self._counts: Counter[str] = Counter()  # of the requests of each client
        self._length = 0
        self._changed = threading.Condition()
        self._closed = False
        self._taken = inf  # when the worker took requests; inf while it waits for them
        self._seconds_each = 0.5  # a moving mean of the time between two requests leaving the line

    def __len__(self) -> int:
        return self._length

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._closed

    def put(self, *items: T) -> None:
        """Append requests of one client, all or none.

        Raises:  Busy if there is no room for them, Closed after `close`
        """
        with self._changed:
            self.require_room(self._client(items[0]), len(items))
            self._append(items)
            self._changed.notify()

    def require_room(self, client: str = "", count: int = 1) -> None:
        """Raise Busy if there is no room for so many requests of a client, Closed after `close`."""
        if self._closed:
            raise Closed
        waiting = len(self)
        if self._counts[client] + waiting + 2 * (count - 1) >= 2 * self.limit:  # the last one finds no place
            raise Busy(waiting, self.retry_after_s)

    def take(self, most: int, *, wait: bool) -> list[T] | None:
        """Remove and return up to `most` requests.

        Args:     wait: wait for one if there is none
        Returns:  None if the line is closed and empty
        """
        with self._changed:
            self._taken = inf
            while wait and not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed and not self._waiting:
                return None
            self._taken = time.monotonic()
            return [self._next() for _ in range(min(most, len(self)))]

    def remove(self, matches: Callable[[T], bool]) -> list[T]:
        """Remove and return the waiting requests that match."""
        with self._changed:
            found = [
                item for turns in self._waiting.values() for items in turns.values() for item in items if matches(item)
            ]
            if found:
                leaving = set(map(id, found))
                self._append(item for item in self._clear() if id(item) not in leaving)
            return found

    def close(self) -> list[T]:
        """Refuse further requests; return those that waited, which are no longer in the line."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            return self._clear()

    @property
    def step_s(self) -> float:
        """The time since the worker, if it is one thread, has asked for requests: that of the step that it computes."""
        return max(0.0, time.monotonic() - self._taken)

    def served(self, seconds: float) -> None:
        """Take the time that a request took into account for `retry_after_s`."""
        self._seconds_each += 0.2 * (seconds - self._seconds_each)

    @property
    def retry_after_s(self) -> int:
        """The time until there is room, in whole seconds, by the speed of the last requests."""
        return max(1, min(60, round(self._seconds_each)))

    def _append(self, items: Iterable[T]) -> None:
        for item in items:
            client = self._client(item)
            self._waiting.setdefault(self._priority(item), OrderedDict()).setdefault(client, deque()).append(item)
            self._counts[client] += 1
            self._length += 1

    def _next(self) -> T:
        """Remove and return the request whose turn it is."""
        priority = min(self._waiting)
        turns = self._waiting[priority]
        client, items = turns.popitem(last=False)
        item = items.popleft()
        if items:
            turns[client] = items  # after the others
        if not turns:
            del self._waiting[priority]
        self._length -= 1
        self._counts[client] -= 1
        if not self._counts[client]:
            del self._counts[client]
        return item

    def _clear(self) -> list[T]:
        """Remove and return all requests, in their order."""
        return [self._next() for _ in range(len(self))]

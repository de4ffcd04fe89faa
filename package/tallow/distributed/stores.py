"""Values by key that several threads or processes share, as in torch.distributed: `Store` and its simple kinds.

Each store applies operations, such as ["add", key, number], to a `Table`. `HashStore` has its own; `FileStore` repeats
the operations that a file lists; `TCPStore` sends them to the process that has the table.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError, DistributedError

__all__ = ["DistStoreError", "HashStore", "PrefixStore", "QueueEmptyError", "Store"]

TIMEOUT = timedelta(minutes=5)
Text = str | bytes
Value = bytes | bytearray  # the latter if it was appended to
PAUSES_S = (0.001, 0.02)  # between two looks for a key: the first, and the longest


class DistStoreError(DistributedError):
    """A key that no process has set in time, or a store that cannot be reached."""


class QueueEmptyError(DistStoreError):
    """A queue of a store that is empty."""


class Table:
    """The values of a store, and its queues."""

    def __init__(self) -> None:
        self.values: dict[bytes, Value] = {}
        self.queues: dict[bytes, deque[bytes]] = {}

    def apply(self, operation: Sequence[bytes]) -> list[Value]:
        """Return the result of an operation: its name and arguments. Raises: ArgumentError"""
        name, *arguments = operation or (b"",)
        rule = RULES.get(name)
        if rule is None:
            raise ArgumentError(f"a store has no operation {name[:20]!r}")
        found: list[Value] = rule(self, *arguments)
        return found

    def set(self, key: bytes, value: bytes) -> list[bytes]:
        """Set the value of a key."""
        self.values[key] = value
        return []

    def get(self, key: bytes) -> list[Value]:
        """Return the value of a key, or nothing."""
        return [self.values[key]] if key in self.values else []

    def add(self, key: bytes, amount: bytes) -> list[Value]:
        """Add to the value of a key, a number in digits, and return the sum.  Raises: ArgumentError for no number"""
        try:
            self.values[key] = b"%d" % (int(self.values.get(key, b"0")) + int(amount))
        except ValueError:
            raise ArgumentError(f"Store.add: the value of {key[:80]!r} is not a number") from None
        return [self.values[key]]

    def append(self, key: bytes, value: bytes) -> list[bytes]:
        """Append to the value of a key."""
        held = self.values.get(key, b"")
        if not isinstance(held, bytearray):
            held = self.values[key] = bytearray(held)
        held += value  # in place: many short appends to a long value take time for what they add
        return []

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[Value]:
        """Set the value of a key if it is the expected one; return the value that the key has then.

        A key without a value has an empty one, and the result is the expected value if it stays so.
        """
        present = self.values.get(key)
        if expected == (present or b""):
            self.values[key] = desired
        return [self.values.get(key, expected)]

    def delete_key(self, key: bytes) -> list[bytes]:
        """Remove the value of a key; return whether it had one."""
        return [b"1"] if self.values.pop(key, None) is not None else []

    def check(self, *keys: bytes) -> list[bytes]:
        """Return whether every key has a value or a queue that is not empty."""
        return [b"1"] if all(key in self.values or self.queues.get(key) for key in keys) else []

    def list_keys(self) -> list[bytes]:
        """Return the keys that have values."""
        return list(self.values)

    def queue_push(self, key: bytes, value: bytes) -> list[bytes]:
        """Add a value to the end of a queue."""
        self.queues.setdefault(key, deque()).append(value)
        return []

    def queue_pop(self, key: bytes) -> list[bytes]:
        """Remove the first value of a queue and return it; or return nothing."""
        queue = self.queues.get(key)
        return [queue.popleft()] if queue else []

    def queue_len(self, key: bytes) -> list[bytes]:
        """Return the number of values in a queue."""
        return [b"%d" % len(self.queues.get(key, ()))]


CHANGES = ("set", "add", "append", "compare_set", "delete_key", "queue_push", "queue_pop")
READS = ("get", "check", "list_keys", "queue_len")
RULES: dict[bytes, Callable[..., Any]] = {name.encode(): getattr(Table, name) for name in (*CHANGES, *READS)}


class Store:
    """Values by key. The base of all stores.

    Keys and values are text, or bytes, and are returned as bytes.

    Raises:  DistStoreError if no process sets a key within the timeout, five minutes by default; ArgumentTypeError
    """

    def __init__(self) -> None:
        self._timeout = TIMEOUT

    def _apply(self, name: str, *arguments: bytes) -> list[bytes]:
        raise NotImplementedError(f"{type(self).__name__} has no values: use HashStore, FileStore or TCPStore")

    def clone(self) -> Store:
        """Return a store with the same values, for another thread."""
        raise NotImplementedError(f"{type(self).__name__} has no values: use HashStore, FileStore or TCPStore")

    @property
    def timeout(self) -> timedelta:
        """The time that `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait for a key."""
        self._timeout = _span(timeout)

    def set(self, key: Text, value: Text) -> None:
        """Set the value of a key."""
        self._apply("set", _bytes(key), _bytes(value))

    def get(self, key: Text) -> bytes:
        """Return the value of a key, once there is one."""
        return self._awaited("get", key, self.timeout)

    def add(self, key: Text, amount: int) -> int:
        """Add to a number, which is 0 before, and return the sum. Raises: ArgumentError for what is no number"""
        if not isinstance(amount, int):
            raise ArgumentTypeError(f"Store.add: the amount must be an int, not {type(amount).__name__}")
        return int(self._apply("add", _bytes(key), b"%d" % amount)[0])

    def append(self, key: Text, value: Text) -> None:
        """Append to the value of a key, which is empty before."""
        self._apply("append", _bytes(key), _bytes(value))

    def compare_set(self, key: Text, expected_value: Text, desired_value: Text) -> bytes:
        """Set a key if it has the expected value; the empty one means none. Return the value it has then."""
        return self._apply("compare_set", _bytes(key), _bytes(expected_value), _bytes(desired_value))[0]

    def check(self, keys: Sequence[Text]) -> bool:
        """Return whether all keys have a value."""
        return bool(self._apply("check", *map(_bytes, keys)))

    def wait(self, keys: Sequence[Text], timeout: timedelta | None = None) -> None:
        """Wait until all keys have a value."""
        self._until(lambda: self.check(keys), keys, self.timeout if timeout is None else _span(timeout))

    def barrier(self, key: Text, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until this many callers have named the key."""
        whole = _bytes(key) + b"/all"
        if self.add(key, 1) == world_size:
            self.set(whole, b"1")
        self.wait([whole], timeout)

    def delete_key(self, key: Text) -> bool:
        """Remove a key. Return whether it had a value."""
        return bool(self._apply("delete_key", _bytes(key)))

    def num_keys(self) -> int:
        """Return the number of keys, with those that a store sets itself to count its users."""
        return len(self._apply("list_keys"))

    def list_keys(self) -> list[str]:
        """Return the keys."""
        return [key.decode() for key in self._apply("list_keys")]

    def has_extended_api(self) -> bool:
        """Return True: stores have `append`, `multi_get` and `multi_set`."""
        return True

    def multi_get(self, keys: Sequence[Text]) -> list[bytes]:
        """Return the values of keys, once they have some."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[Text], values: Sequence[Text]) -> None:
        """Set the values of keys. Raises: ArgumentError for lists of different lengths"""
        if len(keys) != len(values):
            raise ArgumentError(f"Store.multi_set: {len(keys)} keys, but {len(values)} values")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: Text, value: Text) -> None:
        """Append a value to a queue."""
        self._apply("queue_push", _bytes(key), _bytes(value))

    def queue_pop(self, key: Text, block: bool = True) -> bytes:
        """Take the first value of a queue, once there is one. Raises: QueueEmptyError without `block`"""
        if block:
            return self._awaited("queue_pop", key, self.timeout)
        found = self._apply("queue_pop", _bytes(key))
        if not found:
            raise QueueEmptyError(f"queue is empty: {_bytes(key).decode()}")
        return found[0]

    def queue_len(self, key: Text) -> int:
        """Return the length of a queue."""
        return int(self._apply("queue_len", _bytes(key))[0])

    def _awaited(self, name: str, key: Text, timeout: timedelta) -> bytes:
        found: list[bytes] = []

        def look() -> bool:
            found[:] = self._apply(name, _bytes(key))
            return bool(found)

        self._until(look, [key], timeout)
        return found[0]

    def _until(self, done: Callable[[], bool], keys: Sequence[Text], timeout: timedelta) -> None:
        """Look until a function returns True. Raises: DistStoreError that names the keys"""
        end = time.monotonic() + timeout.total_seconds()
        pause, longest = PAUSES_S
        while not done():
            if time.monotonic() >= end:
                names = ", ".join(f"/{_bytes(key).decode(errors='replace')}" for key in keys)
                raise DistStoreError(
                    f"wait timeout after {timeout.total_seconds() * 1000:.0f}ms, keys: {names}",
                    hint="no process has set them: look for an error of the one that should",
                )
            time.sleep(pause)
            pause = min(2 * pause, longest)


class HashStore(Store):
    """A store of the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._table, self._lock = Table(), threading.Lock()

    def _apply(self, name: str, *arguments: bytes) -> list[bytes]:
        with self._lock:
            return list(map(bytes, self._table.apply([name.encode(), *arguments])))

    def clone(self) -> HashStore:
        """Return a store with the same values."""
        other = HashStore()
        other._table, other._lock = self._table, self._lock
        return other


class PrefixStore(Store):
    """A store that puts a prefix in front of each key of another."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix, self._store = _bytes(prefix) + b"/", store

    def _apply(self, name: str, *arguments: bytes) -> list[bytes]:
        if name == "check":
            arguments = tuple(self._prefix + key for key in arguments)
        elif arguments:
            arguments = (self._prefix + arguments[0], *arguments[1:])
        return self._store._apply(name, *arguments)

    @property
    def timeout(self) -> timedelta:
        """That of the other store."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set that of the other store."""
        self._store.set_timeout(timeout)

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        return self._store._underlying_non_prefix_store if isinstance(self._store, PrefixStore) else self._store

    def clone(self) -> PrefixStore:
        """Return a store with the same prefix and values."""
        return PrefixStore(self._prefix[:-1].decode(), self._store.clone())


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise ArgumentTypeError(f"a store has keys and values of text or bytes, not {type(value).__name__}", hint="str(x)")


def _span(timeout: Any) -> timedelta:
    if not isinstance(timeout, timedelta):
        raise ArgumentTypeError(
            f"timeout must be a datetime.timedelta, not {type(timeout).__name__}", hint="timedelta(minutes=5)"
        )
    return timeout

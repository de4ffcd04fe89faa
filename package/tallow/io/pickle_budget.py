"""Limit the work of a pickle in proportion to its length, so that reading one takes linear time and memory.

Every instruction is at least one byte long, the reader never goes back, and there are no loops, so a pickle of n bytes
runs at most n instructions. There are three kinds of instructions:

    reads        strings, numbers, names: the time is proportional to their length
    gathers      lists, tuples, dicts, sets: each value is popped once from the stack, where another instruction pushed
                 it. A key costs a hash and a few comparisons, which `KeyGuard` limits
    calls        functions and states: their arguments may be long, and may come from the memo, so five bytes can name a
                 megabyte again and again. They `pay` for each element that they look at, and for each byte that they
                 copy, from a Budget, which every byte of the pickle and of its storages increases

A storage is read and checked once. Converting its bytes to another dtype, possibly with a copy, is paid for once.

Keys need their own limit. String hashes depend on a secret of the process, but number hashes do not, and a dict whose
keys share one hash takes quadratic time. So integer keys must fit int64, where at most ten values share a hash; of all
keys whose hash a file can choose, at most MAX_EQUAL may share one, and at most MAX_CHOSEN may be in one container, so
that probe sequences in its hash table stay short.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.dtypes import Array, Dtype
from tallow.errors import CheckpointError

FREE = 2**18
RATE = 4  # units per byte; a unit is a byte copied
ELEMENT = 4  # units per element visited in a Python loop
KEY_BYTES_PER_UNIT = 64  # comparing strings takes many bytes per instruction
MAX_EQUAL = 64
MAX_CHOSEN = 2**15
MAX_KEY_LENGTH = 16  # of a tuple as a key: its hash is not cached
MALICIOUS_HINT = "the file is made to exhaust memory; delete it"
ATOMS = (str, bytes, int, float, complex, bool, type(None), Dtype)


class Budget:
    """Count the elements that functions called by a pickle visit, and the bytes that they copy.

    Args:
        may_copy: whether storages have their elements while the pickle is read; in the legacy format they come later.

    Attributes:
        converted: arrays over the bytes of storages as other dtypes, by address, length and dtype.
    """

    def __init__(self, may_copy: bool = True) -> None:
        self.may_copy = may_copy
        self._earned = FREE
        self._read = 0
        self._spent = 0
        self.converted: dict[tuple[int, int, Dtype], Array] = {}

    def earn(self, count: int) -> None:
        """Record that the pickle names a storage of `count` bytes for the first time."""
        self._earned += RATE * count

    def read(self, count: int) -> None:
        """Record that the pickle is read up to byte `count`."""
        self._read = count

    def pay_keys(self, keys: Iterable[Any]) -> None:
        """Pay for comparing keys with equal keys, which may be as long."""
        self.pay(sum(length(key) // KEY_BYTES_PER_UNIT for key in keys))

    def pay(self, units: int) -> None:
        """Pay `units`.  Raises: CheckpointError if the file is too short for the work of its pickle"""
        self._spent += units
        if self._spent > self._earned + RATE * self._read:
            raise CheckpointError("it copies the same values over and over", MALICIOUS_HINT)


def length(key: Any) -> int:
    """Return the number of characters or bytes in a key."""
    if isinstance(key, tuple):
        return sum(map(length, key))
    return len(key) if isinstance(key, str | bytes) else 0


def is_key(value: Any) -> bool:
    """Return whether `value` is safe to hash: hashing nested tuples recurses in C, and may take exponential time."""
    if type(value) is tuple:
        return len(value) <= MAX_KEY_LENGTH and all(isinstance(item, ATOMS) for item in value)
    return isinstance(value, ATOMS)


class KeyGuard:
    """Guard for the keys of one dict or set: `admit` refuses keys that would make it slow."""

    __slots__ = ("_chosen", "_count", "_equal")

    def __init__(self) -> None:
        self._count = 0
        self._chosen = 0
        self._equal: dict[int, int] = {}

    def admit(self, key: Any) -> Any:
        """Return the key.  Raises: CheckpointError if it is not allowed, or too many keys share its hash"""
        if type(key) is not str:
            self._check(key)
        self._count += 1
        return key

    def _check(self, key: Any) -> None:
        if not is_key(key):
            raise CheckpointError(
                f"a {type(key).__name__} as a key; only strings, numbers and short tuples of them are allowed"
            )
        items = key if type(key) is tuple else (key,)
        if not all(not isinstance(item, int) or -(2**63) <= item < 2**63 for item in items):
            raise CheckpointError("an integer beyond int64 as a key")
        if all(isinstance(item, str | bytes | None | Dtype) for item in items):
            return  # a file cannot choose their hashes
        if isinstance(key, int) and 0 <= key <= self._count + 16:
            return  # counting upwards, as most keys do: no collisions
        self._chosen += 1
        hash_ = hash(key)
        self._equal[hash_] = self._equal.get(hash_, 0) + 1
        if self._equal[hash_] > MAX_EQUAL or self._chosen > MAX_CHOSEN:
            raise CheckpointError(
                f"more than {MAX_EQUAL} keys with the same hash, or {MAX_CHOSEN} numbers that do not count upwards",
                "save them as a list of pairs",
            )

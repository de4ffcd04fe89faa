"""What a pickle may use up, in proportion to its length: the argument that reading one takes linear time and memory.

Every instruction is at least one byte long, the reader never goes back, and there are no loops, so a pickle of n bytes
runs at most n instructions. Each instruction falls into one of three kinds.

    reads        strings, numbers, names: they take as long as they are
    gathers      lists, tuples, dicts, sets: they take each value off the stack once, where an instruction of its own
                 has put it. A key costs a hash and a few comparisons: `Crowd` sees to it
    calls        functions and states: what they get may be long, and may have been remembered, so that five bytes can
                 name a megabyte again and again. They `pay` for each element that they look at, and for each byte that
                 they copy, out of a Budget, which every byte of the pickle, and of the storages that it names, fills

A storage is read and checked once. Its bytes as another dtype, which may have to be copied, are made once and paid for.

Keys are what is left. Strings hash with a secret of the process, but numbers do not, and a dict whose keys have one
hash takes quadratic time. So integers as keys fit int64, where no more than ten share a hash; of all keys whose hash a
file can choose no more than MAX_EQUAL may share one, and no more than MAX_CHOSEN may be in one container, so that a
walk through the places of its table that others have taken is short, whatever the keys are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.dtypes import Array, Dtype
from tallow.errors import CheckpointError

FREE = 2**18
RATE = 4  # units for each byte; a unit is a byte copied
ELEMENT = 4  # units for an element looked at, in a loop of Python
KEY_BYTES_PER_UNIT = 64  # two strings are compared at many bytes in the time of one instruction
MAX_EQUAL = 64
MAX_CHOSEN = 2**15
MAX_KEY_LENGTH = 16  # of a tuple as a key: its hash is computed anew each time
MADE_TO_EXHAUST = "it was made to exhaust memory; delete it"
ATOMS = (str, bytes, int, float, complex, bool, type(None), Dtype)


class Budget:
    """Counts what the functions that a pickle calls look at and copy.

    Args:
        may_copy: whether storages hold their elements when the pickle is read; those of the legacy format come after.

    Attributes:
        converted: arrays over the bytes of storages as elements of other dtypes, by place, length and dtype.
    """

    def __init__(self, may_copy: bool = True) -> None:
        self.may_copy = may_copy
        self._earned = FREE
        self._read = 0
        self._spent = 0
        self.converted: dict[tuple[int, int, Dtype], Array] = {}

    def earn(self, count: int) -> None:
        """The pickle names a storage of `count` bytes for the first time."""
        self._earned += RATE * count

    def read(self, count: int) -> None:
        """The pickle is read up to byte `count`."""
        self._read = count

    def pay_keys(self, keys: Iterable[Any]) -> None:
        """Pay for comparing keys with others, maybe as long, that turn out to be the same."""
        self.pay(sum(length(key) // KEY_BYTES_PER_UNIT for key in keys))

    def pay(self, units: int) -> None:
        """Raises CheckpointError when the file is too short for all that its pickle does."""
        self._spent += units
        if self._spent > self._earned + RATE * self._read:
            raise CheckpointError("it copies the same values over and over", MADE_TO_EXHAUST)


def length(key: Any) -> int:
    """How many characters or bytes are in a key."""
    if isinstance(key, tuple):
        return sum(map(length, key))
    return len(key) if isinstance(key, str | bytes) else 0


def is_key(value: Any) -> bool:
    """Whether hashing `value` is safe: hashing nested tuples recurses in C, and may take forever."""
    if type(value) is tuple:
        return len(value) <= MAX_KEY_LENGTH and all(isinstance(item, ATOMS) for item in value)
    return isinstance(value, ATOMS)


class Crowd:
    """The keys of one dict or set, of which `admit` refuses those that would make it slow."""

    __slots__ = ("_chosen", "_count", "_equal")

    def __init__(self) -> None:
        self._count = 0
        self._chosen = 0
        self._equal: dict[int, int] = {}

    def admit(self, key: Any) -> Any:
        """The key. Raises CheckpointError if it may not be one, or one too many of its hash."""
        if type(key) is not str:
            self._check(key)
        self._count += 1
        return key

    def _check(self, key: Any) -> None:
        if not is_key(key):
            raise CheckpointError(
                f"a {type(key).__name__} as a key; only strings, numbers and short tuples of them are read"
            )
        items = key if type(key) is tuple else (key,)
        if not all(not isinstance(item, int) or -(2**63) <= item < 2**63 for item in items):
            raise CheckpointError("an integer beyond int64 as a key")
        if all(isinstance(item, str | bytes | None | Dtype) for item in items):
            return  # no file knows their hashes
        if isinstance(key, int) and 0 <= key <= self._count + 16:
            return  # counted upwards, as most are: they lie side by side
        self._chosen += 1
        hashed = hash(key)
        self._equal[hashed] = self._equal.get(hashed, 0) + 1
        if self._equal[hashed] > MAX_EQUAL or self._chosen > MAX_CHOSEN:
            raise CheckpointError(
                f"more than {MAX_EQUAL} keys of one hash, or {MAX_CHOSEN} numbers that do not count upwards",
                "save them as a list of pairs",
            )

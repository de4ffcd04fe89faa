"""Tensor shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import Any, SupportsIndex, overload

from tallow.errors import ArgumentTypeError

_item = tuple.__getitem__  # looked up once: indexing a shape is common
new_size = tuple.__new__  # of a tuple that is a shape for certain


def _integers(lengths: Iterable[Any]) -> tuple[int, ...]:
    """Return lengths as integers.  Raises: TypeError for what is not an integer"""
    integers = []
    for position, length in enumerate(lengths):
        try:
            integers.append(length if isinstance(length, int) else index(length))  # one that varies stays as it is
        except TypeError:
            kind = type(length).__name__
            raise ArgumentTypeError(f"Size takes an iterable of 'int' (item {position} is '{kind}')") from None
    return tuple(integers)


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple with `numel()`. Slices, sums and multiples are shapes too."""

    __slots__ = ()

    def __new__(cls, lengths: Iterable[SupportsIndex] = ()) -> Size:
        """Create a shape.  Raises: TypeError for what is not an integer"""
        return new_size(cls, _integers(lengths))

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Size: ...

    def __getitem__(self, index: Any) -> Any:
        part = _item(self, index)
        return new_size(Size, part) if type(part) is tuple else part

    def __add__(self, other: Any) -> Any:
        return new_size(Size, super().__add__(_integers(other) if isinstance(other, tuple) else other))

    def __radd__(self, other: Any) -> Any:
        return new_size(Size, _integers(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        return new_size(Size, super().__mul__(count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"tallow.Size([{', '.join(map(str, self))}])"

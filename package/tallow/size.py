"""Shapes."""

from __future__ import annotations

import math


class Size(tuple[int, ...]):
    """A tensor's shape: a tuple that knows its number of elements."""

    __slots__ = ()

    def numel(self) -> int:
        return math.prod(self)

    def __repr__(self) -> str:
        return f"tallow.Size([{', '.join(map(str, self))}])"

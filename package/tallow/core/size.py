"""Tensor shapes."""

from __future__ import annotations

import math


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple with `numel()`."""

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"tallow.Size([{', '.join(map(str, self))}])"

"""Tensor shapes."""

from __future__ import annotations

import math
from typing import Any


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple with `numel()`."""

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __add__(self, other: Any) -> Any:
        return Size(super().__add__(other))

    def __repr__(self) -> str:
        return f"tallow.Size([{', '.join(map(str, self))}])"

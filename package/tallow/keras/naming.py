"""The names that layers and models get when they are given none: dense, dense_1, ..."""

from __future__ import annotations

import functools
import re
from collections import Counter

_used: Counter[str] = Counter()


@functools.cache
def snake_case(name: str) -> str:
    """ "MaxPooling2D" -> "max_pooling2d" """
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().strip("_")


def automatic_name(base: str) -> str:
    """`base` the first time, then base_1, base_2, ... until `clear_session`."""
    count = _used[base]
    _used[base] += 1
    return base if not count else f"{base}_{count}"


def unique_among(names: list[str]) -> list[str]:
    """The same names, those that repeat with _1, _2, ... behind."""
    taken: dict[str, None] = {}  # in order
    counts: Counter[str] = Counter()
    for name in names:
        free = name
        while free in taken:
            counts[name] += 1
            free = f"{name}_{counts[name]}"
        taken[free] = None
    return list(taken)


def clear_session(free_memory: bool = True) -> None:
    """Start the automatic names over. `free_memory` is taken for Keras' sake: nothing else is kept."""
    _used.clear()

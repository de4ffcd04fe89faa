"""Automatic names of layers and models: dense, dense_1, ..."""

from __future__ import annotations

import functools
import re
from collections import Counter

_used: Counter[str] = Counter()


@functools.cache
def snake_case(name: str) -> str:
    """Convert CamelCase to snake_case: "MaxPooling2D" -> "max_pooling2d"."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().strip("_")


def automatic_name(base: str) -> str:
    """Return `base` the first time, then base_1, base_2, ... until `clear_session`."""
    count = _used[base]
    _used[base] += 1
    return base if not count else f"{base}_{count}"


def unique_among(names: list[str]) -> list[str]:
    """Return the names with _1, _2, ... appended to duplicates."""
    unique: dict[str, None] = {}  # keeps the order
    counts: Counter[str] = Counter()
    for name in names:
        candidate = name
        while candidate in unique:
            counts[name] += 1
            candidate = f"{name}_{counts[name]}"
        unique[candidate] = None
    return list(unique)


def clear_session(free_memory: bool = True) -> None:
    """Reset the automatic names; `free_memory` is accepted for Keras compatibility and has no effect."""
    _used.clear()

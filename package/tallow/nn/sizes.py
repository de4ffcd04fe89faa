"""Sizes of spatial dimensions as layers store them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def per_dim(value: Any, dims: int) -> tuple[Any, ...]:
    """Return a tuple of one size per dimension: `value` repeated, or its elements if it is iterable."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims

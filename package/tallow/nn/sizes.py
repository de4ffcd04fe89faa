"""Sizes as layers keep them: one number for all dims, or one for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def per_dim(value: Any, dims: int) -> tuple[Any, ...]:
    """`value` for each of `dims` dims, unless it is several values already."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims

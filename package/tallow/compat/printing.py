"""Print shapes, dtypes and layouts as PyTorch does while the stand-in is installed: `torch.float64`, `torch.Size([2])`.

tallow itself knows nothing of it: the functions that print are replaced, and restored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.size import Size
from tallow.dtypes import dtype
from tallow.ops.memory_format import layout, memory_format

_OWN: dict[type, Callable[[Any], str]] = {kind: vars(kind)["__repr__"] for kind in (Size, dtype, layout, memory_format)}


def as_torch(own: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a function that prints a value as `own` does, as one of torch."""

    def __repr__(self: Any) -> str:
        return own(self).replace("tallow.", "torch.", 1)

    return __repr__


def print_as_torch() -> None:
    """Print values as PyTorch's. A second call has no effect."""
    for kind, own in _OWN.items():
        kind.__repr__ = as_torch(own)  # type: ignore[method-assign, assignment]


def print_as_tallow() -> None:
    """Print values as tallow's again."""
    for kind, own in _OWN.items():
        kind.__repr__ = own  # type: ignore[method-assign, assignment]

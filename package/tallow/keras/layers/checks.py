"""Checks of arguments that many layers take."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError, ShapeError
from tallow.keras.shapes import Shape


def positive(layer: str, argument: str, value: Any) -> int:
    """Return `value`; raise ArgumentError if it is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{layer}: {argument} must be a positive integer, got {value!r}")
    return value


def known_size(layer: str, shape: Shape, axis: int) -> int:
    """Return the size of an axis; raise ShapeError if it is None, because weights need it."""
    if not -len(shape) <= axis < len(shape) or shape[axis] is None:
        raise ShapeError(
            f"{layer}: axis {axis} of the input's shape {tuple(shape)} must be known, because the weights depend on it",
            hint="set this size in keras.Input",
        )
    return int(shape[axis])  # type: ignore[arg-type]  # None was refused above

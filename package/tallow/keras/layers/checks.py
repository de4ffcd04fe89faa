"""Checks of the arguments that many layers take."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError, ShapeError
from tallow.keras.shapes import Shape


def positive(layer: str, argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{layer}: {argument} must be a positive integer, got {value!r}")
    return value


def known(layer: str, shape: Shape, axis: int) -> int:
    """The size of an axis that weights depend on."""
    if not -len(shape) <= axis < len(shape) or shape[axis] is None:
        raise ShapeError(
            f"{layer}: axis {axis} of the input's shape {tuple(shape)} must be known, for the weights depend on it",
            mend="give keras.Input its size",
        )
    return int(shape[axis])  # type: ignore[arg-type]  # None was refused

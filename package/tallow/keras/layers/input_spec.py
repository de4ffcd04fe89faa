"""The input shapes that a layer accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tallow.errors import ShapeError
from tallow.keras.shapes import Shape


class InputSpec:
    """The dtype, rank and sizes that a layer expects of its input.

    Args:    as keras.InputSpec
        axes: the sizes that some axes must have, by index.
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Sequence[int | None] | None = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
        name: str | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = None if shape is None else tuple(shape)
        self.ndim = ndim if self.shape is None else len(self.shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = dict(axes or {})
        if self.shape is not None:
            self.axes |= dict(enumerate(self.shape))
        self.name = name

    def check(self, layer: str, shape: Shape) -> None:
        """Raise ShapeError if `shape` does not fit; `layer` is the name in the message."""
        rank = len(shape)
        if self.ndim is not None and rank != self.ndim:
            raise ShapeError(
                f"{layer}: expected {self.ndim} dims, got {rank}: shape {shape}", hint=_hint(rank, self.ndim)
            )
        if self.min_ndim is not None and rank < self.min_ndim:
            raise ShapeError(
                f"{layer}: expected {self.min_ndim} dims or more, got {rank}: shape {shape}",
                hint=_hint(rank, self.min_ndim),
            )
        if self.max_ndim is not None and rank > self.max_ndim:
            raise ShapeError(f"{layer}: expected {self.max_ndim} dims or fewer, got {rank}: shape {shape}")
        for axis, size in self.axes.items():
            if not -rank <= axis < rank:
                raise ShapeError(f"{layer}: expected axis {axis} to have size {size}, got shape {shape}")
            if size is not None and shape[axis] not in (size, None):
                axis_name = "last axis" if axis in (-1, rank - 1) else f"axis {axis}"
                raise ShapeError(f"{layer}: expected {axis_name} of size {size}, got {shape[axis]}: shape {shape}")


def _hint(rank: int, expected: int) -> str | None:
    if rank != expected - 1:
        return None
    return "layers take batches: pass x[None] for one sample; images and sequences of single numbers need x[..., None]"

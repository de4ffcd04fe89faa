"""Sizes, padding and channel layout of convolutions and pooling.

Keras has channels last, tallow's ops have them next to the batch. The layers convert images with views, and consecutive
conversions cancel out: a channels-last view that one layer returns becomes the original array again in the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.settings import image_data_format
from tallow.keras.shapes import Shape
from tallow.nn import functional as F

Sizes = tuple[int, ...]
Pads = list[tuple[int, int]]


def sizes(layer: str, argument: str, value: Any, rank: int, least: int = 1) -> Sizes:
    """Return an int, or one int per spatial dim, as a tuple."""
    values = (value,) * rank if isinstance(value, int) else value
    is_tuple = isinstance(values, list | tuple) and len(values) == rank
    if not is_tuple or not all(isinstance(n, int) and not isinstance(n, bool) and n >= least for n in values):
        raise ArgumentError(
            f"{layer}: {argument}={value!r}", hint=f"pass an integer of at least {least}, or a tuple of {rank}"
        )
    return tuple(values)


def check_padding(layer: str, padding: Any, *more_modes: str) -> str:
    """Return the padding in lower case; raise ArgumentError if it is unknown."""
    modes = ("valid", "same", *more_modes)
    if not isinstance(padding, str) or padding.lower() not in modes:
        raise ArgumentError(f"{layer}: padding={padding!r}", hint=f"use {' or '.join(map(repr, modes))}")
    return padding.lower()


def is_channels_last(layer: str, data_format: Any) -> bool:
    """Return whether channels are last; raise ArgumentError for an unknown layout."""
    layout = image_data_format() if data_format is None else data_format
    if layout not in ("channels_last", "channels_first"):
        raise ArgumentError(f"{layer}: data_format={data_format!r}", hint="use 'channels_last' or 'channels_first'")
    return bool(layout == "channels_last")


def to_first(x: Tensor, is_last: bool) -> Tensor:
    """Move the channels next to the batch, if they are last."""
    return x.movedim(-1, 1) if is_last and x.ndim > 2 else x


def from_first(x: Tensor, is_last: bool) -> Tensor:
    """Move the channels from next to the batch to the end, if the layout has them last."""
    return x.movedim(1, -1) if is_last and x.ndim > 2 else x


def spatial_of(shape: Shape, is_last: bool) -> Shape:
    """Return the spatial sizes of a shape."""
    return shape[1:-1] if is_last else shape[2:]


def channels_of(shape: Shape, is_last: bool) -> int | None:
    """Return the number of channels of a shape."""
    return shape[-1] if is_last else shape[1]


def with_spatial(shape: Shape, spatial: Sequence[int | None], channels: int | None, is_last: bool) -> Shape:
    """Return a shape with other spatial sizes and channels."""
    return (shape[0], *spatial, channels) if is_last else (shape[0], channels, *spatial)


def window_count(layer: str, size: int | None, reach: int, stride: int, padding: str) -> int | None:
    """Return the number of windows that span `reach` elements along a dim of this size."""
    if size is None:
        return None
    count = -(-size // stride) if padding != "valid" else (size - reach) // stride + 1
    if count < 1:
        raise ArgumentError(
            f"{layer}: a window of {reach} is larger than an input of {size}", hint="use padding='same'"
        )
    return count


def same_padding(spatial: Sequence[int], reach: Sizes, strides: Sizes) -> Pads:
    """Return the padding of each dim that gives ceil(size / stride) windows; an odd element goes to the end."""
    totals = [max((-(-n // s) - 1) * s + r - n, 0) for n, r, s in zip(spatial, reach, strides, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def pad(x: Tensor, pads: Pads, value: float = 0.0) -> Tensor:
    """Pad the last dims."""
    if not any(before or after for before, after in pads):
        return x
    flat = [n for pair in reversed(pads) for n in pair]
    return F.pad(x, flat, value=value)


def symmetric(pads: Pads) -> Sizes | None:
    """Return the padding of each dim if it is equal on both sides, else None."""
    return tuple(before for before, _ in pads) if all(before == after for before, after in pads) else None

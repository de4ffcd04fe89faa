"""What convolutions and pooling share: sizes, padding and the place of the channels.

Keras has the channels last, tallow's ops next to the batch. The layers turn images around by views, and take turns off
each other: what one layer returns as a view of an array with its channels first is that array again for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.errors import ArgumentError
from tallow.keras.settings import image_data_format
from tallow.keras.shapes import Shape
from tallow.nn import functional as F
from tallow.tensor import Tensor

Sizes = tuple[int, ...]
Pads = list[tuple[int, int]]


def sizes(layer: str, argument: str, value: Any, rank: int, least: int = 1) -> Sizes:
    """An int, or one for each spatial dim, as a tuple."""
    given = (value,) * rank if isinstance(value, int) else value
    is_tuple = isinstance(given, list | tuple) and len(given) == rank
    if not is_tuple or not all(isinstance(n, int) and not isinstance(n, bool) and n >= least for n in given):
        raise ArgumentError(
            f"{layer}: {argument}={value!r}", mend=f"give an integer of at least {least}, or a tuple of {rank}"
        )
    return tuple(given)


def checked_padding(layer: str, padding: Any, *further: str) -> str:
    known = ("valid", "same", *further)
    if not isinstance(padding, str) or padding.lower() not in known:
        raise ArgumentError(f"{layer}: padding={padding!r}", mend=f"use {' or '.join(map(repr, known))}")
    return padding.lower()


def checked_format(layer: str, data_format: Any) -> bool:
    """Whether the channels are last."""
    found = image_data_format() if data_format is None else data_format
    if found not in ("channels_last", "channels_first"):
        raise ArgumentError(f"{layer}: data_format={data_format!r}", mend="use 'channels_last' or 'channels_first'")
    return bool(found == "channels_last")


def to_first(x: Tensor, is_last: bool) -> Tensor:
    """With the channels next to the batch."""
    return x.movedim(-1, 1) if is_last and x.ndim > 2 else x


def from_first(x: Tensor, is_last: bool) -> Tensor:
    return x.movedim(1, -1) if is_last and x.ndim > 2 else x


def spatial_of(shape: Shape, is_last: bool) -> Shape:
    return shape[1:-1] if is_last else shape[2:]


def channels_of(shape: Shape, is_last: bool) -> int | None:
    return shape[-1] if is_last else shape[1]


def with_spatial(shape: Shape, spatial: Sequence[int | None], channels: int | None, is_last: bool) -> Shape:
    return (shape[0], *spatial, channels) if is_last else (shape[0], channels, *spatial)


def window_count(layer: str, size: int | None, reach: int, stride: int, padding: str) -> int | None:
    """How many windows that reach over `reach` elements fit."""
    if size is None:
        return None
    count = -(-size // stride) if padding != "valid" else (size - reach) // stride + 1
    if count < 1:
        raise ArgumentError(
            f"{layer}: a window of {reach} does not fit into an input of {size}", mend="use padding='same'"
        )
    return count


def same_padding(spatial: Sequence[int], reach: Sizes, strides: Sizes) -> Pads:
    """The padding before and after each dim that leaves ceil(size / stride) windows; an odd one goes after."""
    totals = [max((-(-n // s) - 1) * s + r - n, 0) for n, r, s in zip(spatial, reach, strides, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def pad(x: Tensor, pads: Pads, value: float = 0.0) -> Tensor:
    """Lengthen the last dims."""
    if not any(before or after for before, after in pads):
        return x
    flat = [n for pair in reversed(pads) for n in pair]
    return F.pad(x, flat, value=value)


def symmetric(pads: Pads) -> Sizes | None:
    """The padding on both sides of each dim, if it is the same."""
    return tuple(before for before, _ in pads) if all(before == after for before, after in pads) else None

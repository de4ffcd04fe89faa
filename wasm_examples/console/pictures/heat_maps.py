"""Tensors as pictures: heat maps of matrices, and images of three channels; as PNG."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

import tallow as tl

# A picture appears by itself if the tensor has at least so many rows and columns: the text of a smaller one says more.
LEAST_SIDE = 8
MAX_SIDE = 1024  # of a picture, in pixels; larger tensors are sampled
SIDE = 160  # smaller ones are enlarged, with visible cells
CHANNELS = (1, 3, 4)
# From the least value to the greatest; and from negative values over 0 to positive ones.
SEQUENTIAL = ("#1d1711", "#6b2c05", "#c95f0c", "#f4b04e", "#fffaf0")
DIVERGING = ("#0d3b66", "#5b9bd0", "#f7f4ee", "#e8893a", "#7a2e03")

Pixels = npt.NDArray[np.uint8]


def picture(value: object, *, unasked: bool = False) -> bytes | None:
    """Return a tensor or an array as PNG, or None if it is no picture.

    Args:
        value: (N, M), of numbers or truth values; or an image of shape (C, N, M) or (N, M, C) with 1, 3 or 4 channels.
        unasked: return None for small ones, and for those with a single row or column.
    """
    if isinstance(value, tl.Tensor):
        if value.device.type == "meta":
            return None
        value = value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf" or not value.size:
        return None
    image = _sides_first(value)
    if image is None or (unasked and min(image.shape[:2]) < LEAST_SIDE):
        return None
    image = image[:: -(-image.shape[0] // MAX_SIDE), :: -(-image.shape[1] // MAX_SIDE)]
    pixels = coloured(image[..., 0]) if image.shape[2] == 1 else _as_colours(image)
    times = max(1, SIDE // max(pixels.shape[:2]))
    return png(pixels.repeat(times, axis=0).repeat(times, axis=1))


def _sides_first(value: npt.NDArray[np.generic]) -> npt.NDArray[np.generic] | None:
    """Return an array of shape (N, M, C), or None."""
    if value.ndim == 2:
        return value[..., None]
    if value.ndim != 3:
        return None
    if value.shape[0] in CHANNELS:
        return np.moveaxis(value, 0, -1)
    return value if value.shape[2] in CHANNELS else None


def coloured(values: npt.NDArray[np.generic]) -> Pixels:
    """Return the colours (N, M, 4) of values (N, M). Values that are no numbers are transparent."""
    numbers = values.astype(np.float64)
    is_number = ~np.isnan(numbers)
    finite = numbers[np.isfinite(numbers)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    anchors = SEQUENTIAL
    if low < 0 < high:
        anchors = DIVERGING
        high = max(high, -low)
        low = -high
    scaled = np.clip(np.nan_to_num(numbers, nan=low, posinf=high, neginf=low), low, high)
    shares = (scaled / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.full_like(scaled, 0.5)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    places = np.linspace(0, 1, len(anchors))
    for channel in range(3):
        colours = [int(anchor[1 + 2 * channel :][:2], 16) for anchor in anchors]
        pixels[..., channel] = np.interp(shares, places, colours)
    pixels[..., 3] = np.where(is_number, 255, 0)
    return pixels


def _as_colours(image: npt.NDArray[np.generic]) -> Pixels:
    """Return the pixels of an image of 3 or 4 channels: bytes as they are, others from 0 to 1, or over their range."""
    if image.dtype == np.uint8:
        pixels = image.astype(np.uint8)
    else:
        numbers = np.nan_to_num(image.astype(np.float64), posinf=np.nan, neginf=np.nan)
        low, high = numbers.min(), numbers.max()
        if low < 0 or high > 1:  # as after a normalisation
            numbers = (numbers - low) / (high - low) if high > low else np.full_like(numbers, 0.5)
        pixels = (numbers * 255 + 0.5).astype(np.uint8)
    if pixels.shape[2] == 4:
        return pixels
    return np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, dtype=np.uint8)], axis=2)


def png(pixels: Pixels) -> bytes:
    """Return pixels of shape (N, M, 4), red, green, blue and opacity, as a PNG file (RFC 2083)."""
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + 4 * width), dtype=np.uint8)  # each begins with its filter: 0, none
    rows[:, 1:] = pixels.reshape(height, 4 * width)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

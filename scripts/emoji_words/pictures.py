"""Pictures of emoji: on white for the index, and for training on grounds of any colour, moved, turned and lit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]
WHITE = (255, 255, 255)
FILLED = 0.88  # share of the side that an emoji takes


def plain(glyph: Image.Image, side: int) -> Pixels:
    """Return an emoji on white.  Shapes: (side, side, 3)"""
    scale = FILLED * side / max(glyph.size)
    size = max(1, round(glyph.width * scale)), max(1, round(glyph.height * scale))
    small = glyph.convert("RGBa").resize(size, Image.Resampling.BOX)
    return _placed(small, ((side - size[0]) // 2, (side - size[1]) // 2), np.array(WHITE), side)


def varied(glyph: Image.Image, side: int, rng: np.random.Generator) -> Pixels:
    """Return an emoji as training sees it.  Shapes: (side, side, 3)"""
    scale = rng.uniform(0.7, 1.0) * side / max(glyph.size)
    stretch = np.exp(rng.normal(0, 0.05))
    size = max(1, round(glyph.width * scale * stretch)), max(1, round(glyph.height * scale / stretch))
    small = glyph.convert("RGBa").resize(size, Image.Resampling.BOX)
    small = small.rotate(rng.normal(0, 6), Image.Resampling.BILINEAR, expand=True)
    place = tuple(
        int(rng.integers(min(0, room), max(0, room) + 1)) for room in (side - small.width, side - small.height)
    )
    ground = np.array(WHITE) if rng.random() < 0.4 else rng.uniform(0, 255, 3)
    pixels = _placed(small, place, ground, side).astype(np.float32)
    if rng.random() < 0.6:
        pixels = (pixels - 128) * rng.uniform(0.75, 1.2) + 128 + rng.normal(0, 12) + rng.normal(0, 5, 3)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _placed(small: Image.Image, place: Sequence[int], ground: npt.NDArray[np.floating], side: int) -> Pixels:
    """Draw a glyph, whose colours are multiplied by alpha, on a ground of one colour."""
    canvas = Image.new("RGBa", (side, side))
    canvas.paste(small, tuple(place))
    drawn = np.asarray(canvas).astype(np.float32)
    return (drawn[..., :3] + (1 - drawn[..., 3:] / 255) * ground).astype(np.uint8)

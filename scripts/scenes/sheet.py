"""Scenes side by side, with their boxes and masks, to look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from .composing import Scene
from .kinds import KINDS

COLUMNS = 6
SCALE = 2


def sheet(scenes: Sequence[Scene]) -> Image.Image:
    """Return one picture of all scenes."""
    side = SCALE * len(scenes[0].pixels)
    rows = -(-len(scenes) // COLUMNS)
    whole = Image.new("RGB", (COLUMNS * side, rows * side))
    for i, scene in enumerate(scenes):
        whole.paste(_marked(scene).resize((side, side)), (i % COLUMNS * side, i // COLUMNS * side))
        pen = ImageDraw.Draw(whole)
        for label, box in zip(scene.labels, scene.boxes, strict=True):
            x, y = i % COLUMNS * side, i // COLUMNS * side
            left, top, right, bottom = (SCALE * float(edge) for edge in box)
            pen.rectangle((x + left, y + top, x + right, y + bottom), outline="red")
            pen.text((x + left + 2, y + top), list(KINDS)[label], fill="red")
    return whole


def _marked(scene: Scene) -> Image.Image:
    pixels = scene.pixels.copy()
    for mask in scene.masks:
        pixels[mask] = pixels[mask] // 2 + np.array([0, 100, 0], np.uint8)
    return Image.fromarray(pixels)

"""Scenes: emoji of random size, turn and brightness over procedural textures, with their visible boxes and masks.

Letters: S side, N things, Y and X pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from .settings import Settings

Rng = np.random.Generator
Pixels = npt.NDArray[np.uint8]
Masks = npt.NDArray[np.bool_]


class Scene(NamedTuple):
    """A picture and what is in it.

    Shapes:  pixels (S, S, 3) uint8; labels (N,); boxes (N, 4), xyxy; masks (N, S, S)
    """

    pixels: Pixels
    labels: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.float32]
    masks: Masks


@dataclass(frozen=True)
class Glyphs:
    """Emoji by kind, each in the styles of several designers; `others` are nothing to find."""

    kinds: Sequence[Sequence[Image.Image]]
    others: Sequence[Image.Image]


def compose(glyphs: Glyphs, settings: Settings, things: tuple[int, int], rng: Rng) -> Scene:
    """Return a random scene. A thing of which less than `least_visible` is seen is left out.

    Args:  things: fewest and most things that are drawn.
    """
    fewest, most = things
    side = settings.side
    pixels = texture(side, rng)
    labels: list[int] = []
    boxes: list[npt.NDArray[np.float32]] = []
    masks: list[Masks] = []
    for _ in range(rng.integers(0, settings.most_others + 1)):
        _paste(pixels, _turned(glyphs.others[int(rng.integers(len(glyphs.others)))], settings, rng), rng)
    for _ in range(rng.integers(fewest, most + 1)):
        kind = int(rng.integers(len(glyphs.kinds)))
        styles = glyphs.kinds[kind]
        # The first style, of the font, is as frequent as the others together.
        style = 0 if len(styles) == 1 or rng.random() < 0.5 else int(rng.integers(1, len(styles)))
        mask = _paste(pixels, _turned(styles[style], settings, rng), rng)
        if mask is None:
            continue
        for other in masks:
            other &= ~mask
        labels.append(kind)
        boxes.append(box_of(mask))
        masks.append(mask)
    whole = [float((box[2] - box[0]) * (box[3] - box[1])) for box in boxes]
    least = 0.5 * settings.least_visible
    kept = [i for i, mask in enumerate(masks) if np.count_nonzero(mask) > least * whole[i]]
    seen = [masks[i] for i in kept]
    return Scene(
        _shot(pixels, rng),
        np.array([labels[i] for i in kept], np.int64),
        np.array([box_of(mask) for mask in seen], np.float32).reshape(-1, 4),
        np.array(seen, bool).reshape(-1, side, side),
    )


def box_of(mask: Masks) -> npt.NDArray[np.float32]:
    """Return the edges (4,), xyxy, of a mask (Y, X) that is not empty."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], np.float32)


def mirrored(scene: Scene) -> Scene:
    """Return the scene as a mirror shows it."""
    boxes = scene.boxes.copy()
    boxes[:, [0, 2]] = len(scene.pixels) - boxes[:, [2, 0]]
    return Scene(scene.pixels[:, ::-1], scene.labels, boxes, scene.masks[..., ::-1])


def _turned(glyph: Image.Image, settings: Settings, rng: Rng) -> Image.Image:
    """Return a glyph in random size and turn, with random brightness."""
    low, high = math.log(settings.smallest), math.log(settings.largest)
    size = math.exp(rng.uniform(low, high)) / max(glyph.size)
    stretch = math.exp(rng.normal(0, 0.08))
    width, height = max(4, round(glyph.width * size * stretch)), max(4, round(glyph.height * size / stretch))
    small = glyph.convert("RGBa").resize((width, height), Image.Resampling.BOX)
    if rng.random() < 0.5:
        small = small.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    turn = rng.normal(0, 12) if rng.random() < 0.8 else rng.uniform(-180, 180)
    return small.rotate(turn, Image.Resampling.BILINEAR, expand=True)


def _paste(pixels: Pixels, glyph: Image.Image, rng: Rng) -> Masks | None:
    """Draw a glyph, whose colours are multiplied by alpha, at a random place; return its mask, None if out of sight."""
    side = len(pixels)
    width, height = glyph.size
    x, y = (int(rng.integers(-length // 4, side - 3 * length // 4)) for length in (width, height))
    left, top, right, bottom = max(x, 0), max(y, 0), min(x + width, side), min(y + height, side)
    if right - left < 4 or bottom - top < 4:
        return None
    source = np.asarray(glyph)[top - y : bottom - y, left - x : right - x].astype(np.float32)
    tint = (rng.normal(1, 0.1) * rng.normal(1, 0.04, 3)).astype(np.float32)
    clear = 1 - source[..., 3:] / 255
    under = pixels[top:bottom, left:right]
    under[...] = np.clip(under * clear + source[..., :3] * tint, 0, 255)
    solid = clear[..., 0] < 0.5
    if np.count_nonzero(solid) <= 20:
        return None
    mask = np.zeros((side, side), bool)
    mask[top:bottom, left:right] = solid
    return mask


def texture(side: int, rng: Rng) -> Pixels:
    """Return a ground (S, S, 3): plain, a gradient, noise of several scales, stripes, or shapes."""
    kind = rng.random()
    plain = _colour(rng)
    if kind < 0.2:
        return np.broadcast_to(plain, (side, side, 3)).astype(np.uint8).copy()
    if kind < 0.35:
        return _resized(np.array([[_colour(rng) for _ in range(2)] for _ in range(2)]), side)
    if kind < 0.65:
        return _noise(side, rng)
    if kind < 0.8:
        return _stripes(side, rng)
    return _shapes(side, rng)


def _colour(rng: Rng) -> npt.NDArray[np.float64]:
    colour = rng.uniform(0, 255, 3)
    return colour if rng.random() < 0.6 else np.full(3, rng.choice([255, 250, 240, 30, 20, rng.uniform(0, 255)]))


def _resized(grid: npt.NDArray[np.floating[Any]], side: int) -> Pixels:
    picture = Image.fromarray(np.clip(grid, 0, 255).astype(np.uint8))
    return np.array(picture.resize((side, side), Image.Resampling.BICUBIC))


def _noise(side: int, rng: Rng) -> Pixels:
    total = np.zeros((side, side, 3), np.float32) + _colour(rng).astype(np.float32)
    for cells in (3, 8, 24, side):
        strength = np.float32(rng.uniform(0, 45))
        grid = strength * rng.standard_normal((cells, cells, 3 if rng.random() < 0.5 else 1), np.float32)
        total += grid if cells == side else _resized(128 + grid + np.zeros(3, np.float32), side) - np.float32(128)
    return np.clip(total, 0, 255).astype(np.uint8)


def _stripes(side: int, rng: Rng) -> Pixels:
    y, x = np.mgrid[:side, :side]
    angle, period = rng.uniform(0, np.pi), rng.uniform(4, 40)
    wave = (x * np.cos(angle) + y * np.sin(angle)) / period % 1 < rng.uniform(0.2, 0.8)
    if rng.random() < 0.5:
        wave ^= (y * np.cos(angle) - x * np.sin(angle)) / period % 1 < 0.5
    return np.where(wave[..., None], _colour(rng), _colour(rng)).astype(np.uint8)


def _shapes(side: int, rng: Rng) -> Pixels:
    pixels = _noise(side, rng) if rng.random() < 0.5 else np.broadcast_to(_colour(rng), (side, side, 3)).copy()
    y, x = np.mgrid[:side, :side]
    for _ in range(rng.integers(2, 9)):
        across, down = rng.uniform(0, side, 2)
        width, height = rng.uniform(4, side / 2, 2)
        dx, dy = np.abs(x - across) / width, np.abs(y - down) / height
        inside = np.maximum(dx, dy) < 1 if rng.random() < 0.5 else dx**2 + dy**2 < 1
        pixels[inside] = _colour(rng)
    return pixels.astype(np.uint8)


def _shot(pixels: Pixels, rng: Rng) -> Pixels:
    """Return the picture as a camera gives it: with another light, blur and noise at times."""
    shot: Any = pixels.astype(np.float32)
    if rng.random() < 0.7:
        light = 128 + rng.normal(0, 18) + rng.normal(0, 8, 3)
        shot = (shot - 128) * np.float32(rng.uniform(0.6, 1.25)) + light.astype(np.float32)
    if rng.random() < 0.3:
        small = round(len(pixels) * rng.uniform(0.5, 0.9))
        picture = Image.fromarray(np.clip(shot, 0, 255).astype(np.uint8))
        shrunk = picture.resize((small, small), Image.Resampling.BILINEAR)
        shot = np.asarray(shrunk.resize(picture.size, Image.Resampling.BILINEAR)).astype(np.float32)
    if rng.random() < 0.4:
        shot = shot + np.float32(rng.uniform(2, 14)) * rng.standard_normal(shot.shape, np.float32)
    return np.clip(shot, 0, 255).astype(np.uint8)

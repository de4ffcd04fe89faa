"""Batches of scenes with the targets of the detector's cells.

Letters: B scenes, S side, A cells, M cells that answer for a thing, N things whose masks are compared, Y and X cells of
masks.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.errors import TallowError
from tallow.models.vision.scenes import MASK_STRIDE

from . import glyphs as drawing
from .assignment import assign
from .composing import Glyphs, Scene, compose
from .kinds import KINDS, OTHERS
from .settings import Settings

TRAIN, VALIDATION, TEST = 0, 1, 2  # first numbers of the keys of scenes


class Batch(NamedTuple):
    """Scenes and targets.

    Shapes:  pixels (B, S, S, 3) uint8; cells (M,), of all scenes one after the other; kinds (M,); boxes (M, 4), xyxy;
             mask_cells, mask_scenes (N,); masks, windows (N, Y X): where a thing is, and its box, which the loss of
             masks looks at
    """

    pixels: npt.NDArray[np.uint8]
    cells: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.float32]
    mask_cells: npt.NDArray[np.int64]
    mask_scenes: npt.NDArray[np.int64]
    masks: npt.NDArray[np.float32]
    windows: npt.NDArray[np.float32]


def load_glyphs(kinds: int, cache: Path, *, unseen: bool = False) -> Glyphs:
    """Return the emoji of the first kinds, and those of no kind.

    Args:
        cache: folder for the packages of the sets of other designers.
        unseen: the set that training does not use, in place of the font and of those that it uses.

    Raises:  TallowError if the font or a package is missing
    """
    emoji = list(KINDS.values())[:kinds]
    every = [*emoji, *OTHERS]
    if unseen:
        styles = [drawing.of_set(every, drawing.UNSEEN, cache)]
    else:
        styles = [list(drawing.of_font(every)), *(drawing.of_set(every, each, cache) for each in drawing.SETS)]
    # Pillow blends colours with those of transparent pixels unless they are multiplied by alpha.
    found = [
        [picture.convert("RGBa") for picture in pictures if picture is not None]
        for pictures in zip(*styles, strict=True)
    ]
    if not all(found[:kinds]):
        raise TallowError(f"no set of emoji has {emoji[[bool(each) for each in found].index(False)]}")
    return Glyphs(found[:kinds], [each for pictures in found[kinds:] for each in pictures])


def scene(glyphs: Glyphs, settings: Settings, *key: int) -> Scene:
    """Return the scene of a key: equal keys give equal scenes."""
    things = settings.things_to_learn if key[0] == TRAIN else settings.things
    return compose(glyphs, settings, things, np.random.default_rng((settings.seed, *key)))


def batch_of(scenes: list[Scene], settings: Settings, rng: np.random.Generator) -> Batch:
    """Return a batch with the targets of its scenes."""
    side = settings.side
    per_scene = sum((side // stride) ** 2 for stride in (8, 16))
    assigned = [assign(each.boxes, side) for each in scenes]
    pairs = list(zip(scenes, assigned, strict=True))
    cells = np.concatenate([a.cells + i * per_scene for i, a in enumerate(assigned)])
    kinds = np.concatenate([s.labels[a.things] for s, a in pairs])
    boxes = np.concatenate([s.boxes[a.things] for s, a in pairs])
    where = np.concatenate([np.full(len(a.cells), i) for i, a in enumerate(assigned)])
    things = np.concatenate([a.things for a in assigned])
    chosen = rng.permutation(len(cells))[: settings.mask_samples]
    masks = np.array([_small(scenes[where[i]].masks[things[i]]) for i in chosen])
    return Batch(
        np.array([each.pixels for each in scenes]),
        cells,
        kinds,
        boxes,
        cells[chosen],
        where[chosen],
        masks.reshape(len(chosen), -1),
        np.array([_window(boxes[i], side // MASK_STRIDE) for i in chosen]).reshape(len(chosen), -1),
    )


def _small(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
    side = len(mask) // MASK_STRIDE
    return mask.reshape(side, MASK_STRIDE, side, MASK_STRIDE).mean((1, 3)).astype(np.float32)


def _window(box: npt.NDArray[np.float32], side: int) -> npt.NDArray[np.float32]:
    left, top, right, bottom = box / MASK_STRIDE
    at = np.arange(side) + 0.5
    inside = ((at >= top - 1) & (at <= bottom + 1))[:, None] & ((at >= left - 1) & (at <= right + 1))
    return (inside / inside.sum()).astype(np.float32)

"""Digits drawn by a program: strokes, bent and rotated at random, rendered as images of MNIST's size.

The user's drawings are rendered by the same `ink`, so a network sees both alike. The page's script contains
this code.
"""

from __future__ import annotations

import math
from itertools import pairwise

import tallow as tl


def arc(x: float, y: float, width: float, height: float, begin: float, end: float) -> list[tuple[float, float]]:
    """Return points on an arc of an ellipse around (x, y); `begin` and `end` are turns, clockwise from the right."""
    turns = [2 * math.pi * (begin + (end - begin) * i / 10) for i in range(11)]
    return [(x + width / 2 * math.cos(turn), y + height / 2 * math.sin(turn)) for turn in turns]


# The strokes of each digit, some in several styles, in a square of side 1 with y downwards.
STROKES = [
    (0, [arc(0.5, 0.5, 0.6, 1.0, 0, 1)]),
    (1, [[(0.5, 0.0), (0.5, 1.0)]]),
    (1, [[(0.3, 0.25), (0.55, 0.0), (0.55, 1.0)]]),
    (2, [[*arc(0.5, 0.28, 0.6, 0.56, 0.5, 1.1), (0.15, 1.0), (0.85, 1.0)]]),
    (3, [[*arc(0.45, 0.25, 0.6, 0.5, 0.55, 1.25), *arc(0.45, 0.74, 0.7, 0.52, 0.75, 1.45)]]),
    (4, [[(0.55, 0.0), (0.1, 0.65), (0.9, 0.65)], [(0.65, 0.35), (0.65, 1.0)]]),
    (4, [[(0.2, 0.0), (0.15, 0.55), (0.85, 0.55)], [(0.7, 0.05), (0.7, 1.0)]]),
    (5, [[(0.8, 0.0), (0.25, 0.0), (0.2, 0.45), *arc(0.45, 0.68, 0.7, 0.64, 0.68, 1.45)]]),
    (6, [[(0.65, 0.0), (0.3, 0.35), *arc(0.5, 0.7, 0.6, 0.6, 0.5, -0.5)]]),
    (7, [[(0.1, 0.0), (0.85, 0.0), (0.4, 1.0)]]),
    (7, [[(0.1, 0.0), (0.85, 0.0), (0.4, 1.0)], [(0.3, 0.5), (0.8, 0.5)]]),
    (8, [[*arc(0.5, 0.25, 0.55, 0.5, 0.25, 1.25), *arc(0.5, 0.75, 0.7, 0.5, 0.75, 1.75)]]),
    (9, [[*arc(0.48, 0.3, 0.6, 0.6, 0, 1), (0.75, 0.65), (0.6, 1.0)]]),
    (9, [[*arc(0.5, 0.3, 0.6, 0.6, 0, 1), *arc(0.45, 0.65, 0.7, 0.7, 0, 0.35)]]),
]


def segments(strokes: list[list[tuple[float, float]]]) -> tl.Tensor:
    """Return the line segments of the strokes, (S, 2, 2): two ends, x and y."""
    return tl.tensor([ends for stroke in strokes for ends in pairwise(stroke)])


def scribble(ends: tl.Tensor, n: int) -> tl.Tensor:
    """Return n random variants of the segments, (n, S, 2, 2): bent, slanted, stretched and rotated."""
    ends = ends - 0.5
    ends = ends + 0.05 * tl.randn(n, 1, 1, 2) * tl.sin(2 * math.pi * (ends.flip(-1) + tl.rand(n, 1, 1, 2)))
    x, y = ends.unbind(-1)
    x, y = x + 0.2 * tl.randn(n, 1, 1) * y, y * tl.exp(0.15 * tl.randn(n, 1, 1))
    turn = 0.15 * tl.randn(n, 1, 1)
    return tl.stack([x * tl.cos(turn) - y * tl.sin(turn), x * tl.sin(turn) + y * tl.cos(turn)], dim=-1)


def ink(ends: tl.Tensor, width: tl.Tensor) -> tl.Tensor:
    """Render segments (N, S, 2, 2), `width` (N,) pixels wide, as images (N, 1, 28, 28) with a drawing of 20 by 20."""
    low, high = ends.amin((1, 2)), ends.amax((1, 2))
    scale = 20 / (high - low).amax(1).clamp(min=1e-3)
    ends = (ends - (low + high)[:, None, None] / 2) * scale[:, None, None, None] + 13.5
    x, y = ends[:, :, 0, :, None, None].unbind(2)
    dx, dy = (ends[:, :, 1] - ends[:, :, 0])[..., None, None].unbind(2)
    to_x, to_y = tl.arange(28) - x, tl.arange(28)[:, None] - y  # from the start of each segment to each pixel
    length = (dx**2 + dy**2).clamp(min=1e-6)
    along = (to_x * (dx / length) + to_y * (dy / length)).clamp(0, 1)
    distance = ((to_x - along * dx) ** 2 + (to_y - along * dy) ** 2).amin(1).sqrt()
    return (width[:, None, None] / 2 + 0.5 - distance).clamp(0, 1).unsqueeze(1)


def drawn_digits(n: int) -> tuple[tl.Tensor, tl.Tensor]:
    """Return n images of each style of each digit, (N, 1, 28, 28), and the digits, (N,)."""
    images = [ink(scribble(segments(strokes), n), 1.5 + 2 * tl.rand(n)) for _, strokes in STROKES]
    return tl.cat(images), tl.tensor([digit for digit, _ in STROKES]).repeat_interleave(n)

"""Points in the plane, in two classes that no straight line separates. The page's script contains these functions."""

from __future__ import annotations

import math

import tallow as tl


def two_moons(n: int, noise: float) -> tuple[tl.Tensor, tl.Tensor]:
    """Return two half circles, each with one end inside the other."""
    label = tl.arange(n) % 2
    side = 1 - 2 * label
    angle = math.pi * tl.rand(n)
    xy = tl.stack([side * (tl.cos(angle) - 0.5), side * (tl.sin(angle) - 0.25)], dim=1) / 1.5
    return xy + noise * tl.randn(n, 2), label


def circles(n: int, noise: float) -> tuple[tl.Tensor, tl.Tensor]:
    """Return a circle inside another."""
    label = tl.arange(n) % 2
    radius = 0.9 - 0.5 * label
    angle = 2 * math.pi * tl.rand(n)
    xy = tl.stack([radius * tl.cos(angle), radius * tl.sin(angle)], dim=1)
    return xy + noise * tl.randn(n, 2), label


def spirals(n: int, noise: float) -> tuple[tl.Tensor, tl.Tensor]:
    """Return two spiral arms that wind around each other."""
    label = tl.arange(n) % 2
    radius = tl.sqrt(tl.rand(n))
    angle = 3 * math.pi * radius + math.pi * label
    xy = tl.stack([radius * tl.cos(angle), radius * tl.sin(angle)], dim=1)
    return xy + 0.3 * noise * tl.randn(n, 2), label


def xor(n: int, noise: float) -> tuple[tl.Tensor, tl.Tensor]:
    """Return the four quarters of a square; opposite quarters have the same class."""
    xy = 2 * tl.rand(n, 2) - 1
    label = (xy[:, 0] * xy[:, 1] < 0).long()
    return xy + noise * tl.randn(n, 2), label

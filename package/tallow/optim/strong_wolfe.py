"""A line search that ends where the strong Wolfe conditions hold.

Source:  Nocedal & Wright, "Numerical Optimization", 2nd ed., algorithms 3.5 and 3.6; details as
    torch.optim.LBFGS
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tallow.dtypes import Array

ENOUGH_DECREASE = 1e-4  # c1: the loss falls by this part of what the slope promises
FLAT_ENOUGH = 0.9  # c2: the slope shrinks to this part


class Point(NamedTuple):
    """A place on the line: how far along it, and there the loss, its gradient, and its slope along the line.

    The numbers are NumPy's, whose division by zero is infinite and not an exception.
    """

    distance: np.float64
    loss: np.float64
    grad: Array
    slope: np.float64


def strong_wolfe(
    evaluate: Callable[[np.float64], Point],
    start: Point,
    distance: np.float64,
    largest_component: float,
    tolerance_change: float,
    max_iterations: int,
) -> tuple[Point, int]:
    """The best point found from `start` on, trying `distance` first; and the number of evaluations.

    Args:
        largest_component: of the direction; times a distance, it tells whether parameters still change.
    """
    bracket, iteration, found = _bracket(evaluate, start, evaluate(distance), max_iterations)
    low, high = _by_loss(bracket)
    stuck = False  # the last trial was near an end of the bracket already
    while not found and iteration < max_iterations:
        near, far = sorted(point.distance for point in bracket)
        if (far - near) * largest_component < tolerance_change:
            break
        trial = interpolate(bracket[0], bracket[1], near, far)
        margin = 0.1 * (far - near)
        close = bool(min(far - trial, trial - near) < margin)
        if close and (stuck or not near < trial < far):
            trial = far - margin if abs(trial - far) < abs(trial - near) else near + margin
            close = False
        stuck = close
        new = evaluate(trial)
        iteration += 1
        if _too_high(new, start) or new.loss >= bracket[low].loss:
            bracket[high] = new
            low, high = _by_loss(bracket)
            continue
        if _is_flat(new, start):
            found = True
        elif new.slope * (bracket[high].distance - bracket[low].distance) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = new
    return bracket[low], iteration + 1


def _bracket(
    evaluate: Callable[[np.float64], Point], start: Point, new: Point, max_iterations: int
) -> tuple[list[Point], int, bool]:
    """Two points with a good one between them, or a good one alone; the iterations, and whether it is the latter."""
    previous = start
    for iteration in range(max_iterations):
        if _too_high(new, start) or (iteration > 1 and new.loss >= previous.loss):
            return [previous, new], iteration, False
        if _is_flat(new, start):
            return [new], iteration, True
        if new.slope >= 0:
            return [previous, new], iteration, False
        least = new.distance + 0.01 * (new.distance - previous.distance)
        further = interpolate(previous, new, least, new.distance * 10)
        previous, new = new, evaluate(further)
    return [start, new], max_iterations, False


def _too_high(point: Point, start: Point) -> bool:
    return bool(point.loss > start.loss + ENOUGH_DECREASE * point.distance * start.slope)


def _is_flat(point: Point, start: Point) -> bool:
    return bool(abs(point.slope) <= -FLAT_ENOUGH * start.slope)


def _by_loss(bracket: list[Point]) -> tuple[int, int]:
    """The places in the bracket of the lower and the higher point."""
    return (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)


def interpolate(a: Point, b: Point, least: np.float64, most: np.float64) -> np.float64:
    """Where the cubic through two points, with their slopes, is lowest between `least` and `most`; else halfway."""
    if a.distance > b.distance:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.distance - b.distance)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    d2 = np.sqrt(square)
    lowest = b.distance - (b.distance - a.distance) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(lowest, least), most)

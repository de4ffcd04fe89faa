"""Line search that ends at a point that satisfies the strong Wolfe conditions.

Source:  Nocedal & Wright, "Numerical Optimization", 2nd ed., algorithms 3.5 and 3.6; details as in
    torch.optim.LBFGS
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tallow.dtypes import Array

ENOUGH_DECREASE = 1e-4  # c1: the loss must fall by this fraction of what the slope predicts
FLAT_ENOUGH = 0.9  # c2: the slope must shrink to this fraction


class Point(NamedTuple):
    """A point on the line: its distance from the start, the loss, its gradient, and its slope along the line.

    The numbers are NumPy scalars, because their division by zero gives infinity instead of an exception.
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
    """Return the best point found from `start`, trying `distance` first, and the number of evaluations.

    Args:
        largest_component: of the direction; its product with a distance tells whether parameters still change.
    """
    bracket, iteration, is_done = _bracket(evaluate, start, evaluate(distance), max_iterations)
    low, high = _order_by_loss(bracket)
    was_near_end = False  # the previous trial was already near an end of the bracket
    while not is_done and iteration < max_iterations:
        lower, upper = sorted(point.distance for point in bracket)
        if (upper - lower) * largest_component < tolerance_change:
            break
        trial = interpolate(bracket[0], bracket[1], lower, upper)
        margin = 0.1 * (upper - lower)
        is_near_end = bool(min(upper - trial, trial - lower) < margin)
        if is_near_end and (was_near_end or not lower < trial < upper):
            trial = upper - margin if abs(trial - upper) < abs(trial - lower) else lower + margin
            is_near_end = False
        was_near_end = is_near_end
        point = evaluate(trial)
        iteration += 1
        if _too_high(point, start) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = _order_by_loss(bracket)
            continue
        if _is_flat(point, start):
            is_done = True
        elif point.slope * (bracket[high].distance - bracket[low].distance) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket[low], iteration + 1


def _bracket(
    evaluate: Callable[[np.float64], Point], start: Point, new: Point, max_iterations: int
) -> tuple[list[Point], int, bool]:
    """Return two points that enclose a good one, or a good one alone; the iterations, and whether it is the latter."""
    previous = start
    for iteration in range(max_iterations):
        if _too_high(new, start) or (iteration > 1 and new.loss >= previous.loss):
            return [previous, new], iteration, False
        if _is_flat(new, start):
            return [new], iteration, True
        if new.slope >= 0:
            return [previous, new], iteration, False
        lowest = new.distance + 0.01 * (new.distance - previous.distance)
        next_distance = interpolate(previous, new, lowest, new.distance * 10)
        previous, new = new, evaluate(next_distance)
    return [start, new], max_iterations, False


def _too_high(point: Point, start: Point) -> bool:
    return bool(point.loss > start.loss + ENOUGH_DECREASE * point.distance * start.slope)


def _is_flat(point: Point, start: Point) -> bool:
    return bool(abs(point.slope) <= -FLAT_ENOUGH * start.slope)


def _order_by_loss(bracket: list[Point]) -> tuple[int, int]:
    """Return the indices of the lower and the higher point in the bracket."""
    return (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)


def interpolate(a: Point, b: Point, least: np.float64, most: np.float64) -> np.float64:
    """Return the minimum of the cubic through two points, limited to `least` and `most`; else their midpoint."""
    if a.distance > b.distance:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.distance - b.distance)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    d2 = np.sqrt(square)
    lowest = b.distance - (b.distance - a.distance) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(lowest, least), most)

"""Search scales that keep the weighted error of rounded weights small, for many groups at once.

Groups are the columns of an array (n, N): N groups of n weights. A sum over a group then adds whole rows, which NumPy
does at the speed of memory, and in the order of a loop over the group. `w` holds the weight of each error.

Rounded weights are integers in float32. The searches try several scales around the obvious one, which maps the largest
weight to the largest integer. For the integers of each, the scale with the least error follows from a linear equation.

Source:  https://github.com/ggml-org/llama.cpp, `ggml/src/ggml-quants.c`, `make_qx_quants`, `make_q3_quants`,
         `make_qkx2_quants`, `make_qkx3_quants` and `make_qp_quants`
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.kernels.quantized.gguf_format import Floats

SMALLEST = np.float32(1e-15)  # groups of smaller weights become zeros
DESCENTS = 5  # passes of coordinate descent
SYMMETRIC_STEPS = tuple(np.float32(0.1) * np.float32(i) for i in range(-9, 10) if i)
POSITIVE_STEPS = tuple(np.float32(0.1) * np.float32(i) for i in range(-4, 5) if i)


class Steps(NamedTuple):
    """Candidates of an affine search: the largest integer is replaced by itself plus first, first + delta, ..."""

    first: float
    delta: float
    number: int


class Affine(NamedTuple):
    """x ≈ scale · code - minimum, with minimum >= 0.

    Shapes:  scale and minimum (N,); codes (n, N), from 0 to the largest integer
    """

    scale: Floats
    minimum: Floats
    codes: Floats


class Scaled(NamedTuple):
    """x ≈ scale · code.

    Shapes:  scale (N,); codes (n, N)
    """

    scale: Floats
    codes: Floats


def affine(x: Floats, w: Floats, top: int, steps: Steps, *, absolute: bool = False) -> Affine:
    """Search scales and minima for codes from 0 to `top`.

    Args:  absolute: sum the magnitudes of errors instead of their squares
    """
    low, high = np.minimum(x.min(axis=0), np.float32(0)), x.max(axis=0)
    sum_w, sum_x = w.sum(axis=0), (w * x).sum(axis=0)

    def error(codes: Floats, scale: Floats, low: Floats) -> Floats:
        difference = scale * codes
        difference += low
        difference -= x
        np.multiply(difference, np.sign(difference) if absolute else difference, out=difference)
        difference *= w
        return difference.sum(axis=0)

    inverse = _quotient(np.float32(top), high - low)
    scale = _quotient(np.float32(1), inverse)
    best = _rounded(x - low, inverse, 0, top)
    least = error(best, scale, low)
    for i in range(steps.number):
        # The range widens or narrows with each better candidate, to its own minimum.
        candidate = _quotient(np.float32(steps.first) + np.float32(steps.delta) * np.float32(i) + top, high - low)
        codes = _rounded(x - low, candidate, 0, top)
        weighted = w * codes
        sum_l = weighted.sum(axis=0)
        sum_xl = (weighted * x).sum(axis=0)
        weighted *= codes
        sum_l2 = weighted.sum(axis=0)
        determinant = sum_w * sum_l2 - sum_l * sum_l
        new_scale = _quotient(sum_w * sum_xl - sum_x * sum_l, determinant)
        new_low = _quotient(sum_l2 * sum_x - sum_l * sum_xl, determinant)
        above = new_low > 0
        new_scale = np.where(above, _quotient(sum_xl, sum_l2), new_scale)
        new_low[above] = 0
        new_error = error(codes, new_scale, new_low)
        better = (determinant > 0) & (new_error < least)
        for kept, new in ((scale, new_scale), (low, new_low), (least, new_error), (best, codes)):
            np.copyto(kept, new, where=better)
    return Affine(scale, -low, best)


def symmetric(x: Floats, w: Floats, half: int) -> Scaled:
    """Search scales for codes from -half to half - 1. The largest weight becomes about -half, with any sign."""
    largest, usable = _largest(x)
    inverse = _quotient(np.float32(-half), largest)
    sum_lx, sum_l2 = _moments(x, w, _rounded(x, inverse, -half, half - 1))
    scale = _quotient(sum_lx, sum_l2)
    best = scale * sum_lx
    for step in SYMMETRIC_STEPS:
        candidate = _quotient(-(np.float32(half) + step), largest)
        sum_lx, sum_l2 = _moments(x, w, _rounded(x, candidate, -half, half - 1))
        better = (sum_l2 > 0) & (sum_lx * sum_lx > best * sum_l2)
        scale = np.where(better, _quotient(sum_lx, sum_l2), scale)
        best, inverse = np.where(better, scale * sum_lx, best), np.where(better, candidate, inverse)
    return Scaled(np.where(usable, scale, np.float32(0)), _rounded(x, inverse, -half, half - 1))


def descended(x: Floats, w: Floats, half: int) -> Scaled:
    """Search scales for codes from -half to half - 1 by coordinate descent: change one code at a time if that helps."""
    largest, usable = _largest(x)
    codes = _rounded(x, _quotient(np.float32(-half), largest), -half, half - 1)
    scale = _descend(x, w, codes, -half, half - 1)
    return Scaled(np.where(usable, scale, np.float32(0)), codes)


def positive(x: Floats, w: Floats, top: int) -> Scaled:
    """Search scales of numbers that are not negative, for codes from 0 to `top`."""
    largest = x.max(axis=0)
    usable = largest >= SMALLEST
    inverse = _quotient(np.float32(top), largest)
    difference = x - _quotient(np.float32(1), inverse) * _rounded(x, inverse, 0, top)
    least = (w * difference * difference).sum(axis=0)
    for step in POSITIVE_STEPS:
        candidate = _quotient(step + np.float32(top), largest)
        difference = x - _quotient(np.float32(1), candidate) * _rounded(x, candidate, 0, top)
        error = (w * difference * difference).sum(axis=0)
        better = error < least
        least, inverse = np.where(better, error, least), np.where(better, candidate, inverse)
    codes = _rounded(x, inverse, 0, top)
    scale = _descend(x, w, codes, 0, top)
    return Scaled(np.where(usable, scale, np.float32(0)), np.where(usable, codes, np.float32(0)))


def _descend(x: Floats, w: Floats, codes: Floats, low: int, high: int) -> Floats:
    """Improve `codes` in place, and return the best scales for them."""
    sum_lx, sum_l2 = _moments(x, w, codes)
    for _ in range(DESCENTS):
        changed = False
        for x_N, w_N, codes_N in zip(x, w, codes, strict=True):
            rest_lx = sum_lx - w_N * x_N * codes_N
            rest_l2 = sum_l2 - w_N * codes_N * codes_N
            usable = (rest_lx > 0) & (rest_l2 > 0 if low == 0 else True)
            new = np.clip(np.rint(x_N * _quotient(rest_l2, np.where(usable, rest_lx, 0))), low, high)
            new_lx, new_l2 = rest_lx + w_N * x_N * new, rest_l2 + w_N * new * new
            better = new_lx * new_lx * sum_l2 > sum_lx * sum_lx * new_l2
            better &= usable & (new != codes_N) & (new_l2 > 0)
            if better.any():
                changed = True
                np.copyto(codes_N, new, where=better)
                np.copyto(sum_lx, new_lx, where=better)
                np.copyto(sum_l2, new_l2, where=better)
        if not changed:
            break
    return _quotient(sum_lx, np.where(sum_l2 > 0, sum_l2, 0))


def _largest(x: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the weight of the largest magnitude of each group, and whether it is not too small."""
    largest = np.take_along_axis(x, abs(x).argmax(axis=0)[None], axis=0)[0]
    return largest, abs(largest) >= SMALLEST


def _moments(x: Floats, w: Floats, codes: Floats) -> tuple[Floats, Floats]:
    weighted = w * codes
    return (w * x * codes).sum(axis=0), (weighted * codes).sum(axis=0)


def _rounded(x: Floats, inverse: Floats, low: int, high: int) -> Floats:
    codes = inverse * x
    np.rint(codes, out=codes)
    np.minimum(codes, np.float32(high), out=codes)
    return np.maximum(codes, np.float32(low), out=codes)


def _quotient(dividend: Any, divisor: Floats) -> Floats:
    """Return dividend / divisor, with 0 where the divisor is 0."""
    out = np.zeros(np.broadcast_shapes(np.shape(dividend), divisor.shape), np.float32)
    return np.divide(dividend, divisor, out=out, where=divisor != 0, dtype=np.float32)

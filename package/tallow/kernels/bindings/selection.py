"""select, clamp and its bounds alone; see src/elementwise/{select,arithmetic,bounded}_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array, Scalar
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, broadcasts_to, contiguous, is_plain, two_float32_arrays
from tallow.kernels.bindings.threads import ELEMENT, by_rows, by_steps
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, CFunction, function
from tallow.kernels.table import kernel, minimum

_select = function("tl_select_f32", None, *[POINTER] * 4, *[SIZE] * 3)
_clamp_min = function("tl_clamp_min_f32", None, *[POINTER] * 3, *[SIZE] * 3, FLOAT)
_clamp_max = function("tl_clamp_max_f32", None, *[POINTER] * 3, *[SIZE] * 3, FLOAT)
_clamp = function("tl_clamp_f32", None, *[POINTER] * 3, SIZE)
_clamp_backward = function("tl_clamp_backward_f32", None, *[POINTER] * 4, SIZE)
LEAST = 1 << 12  # elements; a call takes longer than NumPy with fewer


@minimum(LEAST)
def float32_of_one_shape(condition: Array, yes: Array | Scalar, no: Array | Scalar) -> bool:
    """At least {minimum} elements of float32 arrays of one shape, or of one and a number; any condition."""
    shape = np.shape(yes) or np.shape(no)
    if not shape or not isinstance(condition, np.ndarray) or not broadcasts_to(condition.shape, shape):
        return False
    return all(_is_number(x) or (x.shape == shape and x.size >= LEAST and x.dtype == FLOAT32) for x in (yes, no))


def _is_number(x: Array | Scalar) -> bool:
    return type(x) in (float, int) or (isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype == FLOAT32)


@kernel("select", BACKEND, accepts=float32_of_one_shape)
def select(condition: Array, yes: Array | Scalar, no: Array | Scalar) -> Array:
    """Compute tallow.ops.selection.select_array."""
    y = np.empty(np.shape(yes) or np.shape(no), FLOAT32)
    mask = np.ascontiguousarray(np.broadcast_to(condition, y.shape))
    (yes, by_yes), (no, by_no) = _for_c(yes), _for_c(no)
    steps = ((0, ITEM, 0), (1, 1, 0), (2, by_yes * ITEM, 0), (3, by_no * ITEM, 0), (4, -1, -1))
    by_steps(_select, (y, mask, yes, no, y.size, by_yes, by_no), ELEMENT * y.size, y.size, *steps)
    return y


def _for_c(x: Array | Scalar) -> tuple[Array, int]:
    """Return an array for C and its step: 0 for a number, or the same one everywhere, as the gradient of a sum is."""
    x = np.asarray(x, FLOAT32)
    return (contiguous(x), 1) if any(x.strides) else (x, 0)


@minimum(LEAST)
def float32_and_number(x: Array, bound: Scalar) -> bool:
    """A contiguous float32 array of at least {minimum} elements, and a number that is not NaN."""
    return type(bound) in (float, int) and bound == bound and x.size >= LEAST and is_plain(x)


def _bounded(function: CFunction, x: Array, bound: Scalar) -> Array:
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    by_rows(function, (y, x, None), x.size, ELEMENT * x.size, 1, 1, float(bound))
    return y


@kernel("clamp_min", BACKEND, accepts=float32_and_number)
def clamp_min(x: Array, bound: Scalar) -> Array:
    """Return the larger of each element and the bound."""
    return _bounded(_clamp_min, x, bound)


@kernel("clamp_max", BACKEND, accepts=float32_and_number)
def clamp_max(x: Array, bound: Scalar) -> Array:
    """Return the smaller of each element and the bound."""
    return _bounded(_clamp_max, x, bound)


@minimum(LEAST)
def float32_and_two_numbers(x: Array, low: Scalar, high: Scalar) -> bool:
    """A contiguous float32 array of at least {minimum} elements, and two numbers that are not NaN."""
    return type(high) in (float, int) and high == high and float32_and_number(x, low)


@kernel("clamp", BACKEND, accepts=float32_and_two_numbers)
def clamp(x: Array, low: Scalar, high: Scalar) -> Array:
    """Return min(max(x, low), high)."""
    x, bounds = contiguous(x), np.array((low, high), FLOAT32)
    y = np.empty(x.shape, FLOAT32)
    by_rows(_clamp, (y, x, bounds), x.size, ELEMENT * x.size, shared=1)
    return y


@minimum(LEAST)
def two_of_float32_and_two_numbers(g: Array, x: Array, low: Scalar, high: Scalar) -> bool:
    """Two contiguous float32 arrays of one shape, of at least {minimum} elements, and two numbers that are not NaN."""
    return two_float32_arrays(g, x) and float32_and_two_numbers(x, low, high)


@kernel("clamp_backward", BACKEND, accepts=two_of_float32_and_two_numbers)
def clamp_backward(g: Array, x: Array, low: Scalar, high: Scalar) -> Array:
    """Return g where x is between the bounds and 0 elsewhere."""
    g, x, bounds = contiguous(g), contiguous(x), np.array((low, high), FLOAT32)
    y = np.empty(x.shape, FLOAT32)
    by_rows(_clamp_backward, (y, g, x, bounds), x.size, ELEMENT * x.size, shared=1)
    return y

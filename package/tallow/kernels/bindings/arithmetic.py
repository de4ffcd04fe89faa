"""add, sub, mul, div of large arrays, and lerp; see src/elementwise/arithmetic_f32.c."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from tallow.dtypes import Array, Scalar
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, is_plain
from tallow.kernels.bindings.threads import ELEMENT, by_rows, elementwise
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, function
from tallow.kernels.on_arrays import address
from tallow.kernels.table import PLANS, kernel, minimum
from tallow.kernels.threads import thread_count

CHECKED = "call kernels.run, which checks first"
# Of elements. NumPy in WASM takes twice as long with more. Natively it is as fast with one shape, on one thread.
LEAST = 1 << 17 if BACKEND == "wasm" else 1 << 19
LEAST_ROW = 128  # of elements, with which rows and columns are worth a call: NumPy takes twice as long

_functions = {
    name: function(f"tl_{name}_f32", None, *[POINTER] * 3, *[SIZE] * 3, FLOAT) for name in ("add", "sub", "mul", "div")
}
_lerp = function("tl_lerp_f32", None, *[POINTER] * 3, *[SIZE] * 3, FLOAT)
LEAST_OF_LERP = 1 << 12  # elements; a call takes longer than NumPy with fewer


@minimum(LEAST)
def large_float32(a: Array | Scalar, b: Array | Scalar) -> bool:
    """A contiguous float32 array of at least {minimum} elements, and a row or a column, or natively on two threads any.

    That is, an array of its shape or a number. In the tab one thread takes them.
    """
    if not (isinstance(a, np.ndarray) and a.size >= LEAST and is_plain(a)):
        return False
    if type(b) in (float, int):
        return _worth_a_call()
    if not isinstance(b, np.ndarray) or b.dtype != FLOAT32:
        return False
    if b.shape == a.shape:
        return _worth_a_call() and is_plain(b)
    return _elements_for_a_row(a.shape, b.shape) is not None


def _worth_a_call() -> bool:
    return BACKEND == "wasm" or thread_count() > 1


@lru_cache(PLANS)
def _elements_for_a_row(shape: tuple[int, ...], of_b: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return rows, their length, and how many elements of b belong to each: 0 of a row for all, 1 of a column.

    None for an array that is neither.
    """
    if of_b == shape:
        return math.prod(shape), 1, 1
    n = math.prod(of_b)
    if n >= LEAST_ROW and of_b == shape[len(shape) - len(of_b) :]:
        return math.prod(shape) // n, n, 0
    width = shape[-1] if shape else 0
    if width >= LEAST_ROW and of_b == (*shape[:-1], 1):
        return n, width, 1
    return None


def _write(name: str, a: Array, b: Array | Scalar, y: Array) -> None:
    """Compute into `y`: an operand, or memory that neither shares."""
    if not isinstance(b, np.ndarray):
        by_rows(_functions[name], (y, a, None), a.size, ELEMENT * a.size, 1, 1, float(b))
        return
    division = _elements_for_a_row(a.shape, b.shape)
    if division is None or not is_plain(a) or b.dtype != FLOAT32:
        raise ShapeError(f"{name}: no float32 arrays of one shape, or with a row or a column", hint=CHECKED)
    rows, n, each = division
    by_rows(_functions[name], (y, a, contiguous(b)), rows, ELEMENT * a.size, n, each, 0.0, shared=int(not each))


def _compute(name: str, a: Array, b: Array | Scalar) -> Array:
    y = np.empty(a.shape, FLOAT32)
    _write(name, a, b, y)
    return y


def _write_to_any(name: str, a: Array, b: Array | Scalar, y: Array) -> None:
    if is_plain(y) and not any(isinstance(x, np.ndarray) and _overlaps(x, y) for x in (a, b)):
        _write(name, a, b, y)
    else:
        y[...] = _compute(name, a, b)


def _overlaps(x: Array, y: Array) -> bool:
    """Return whether arrays share memory, but not element by element."""
    return np.may_share_memory(x, y) and (address(x) != address(y) or x.shape != y.shape)


# a + b and so on, elementwise
kernel("add", BACKEND, accepts=large_float32, into=partial(_write_to_any, "add"))(partial(_compute, "add"))
kernel("sub", BACKEND, accepts=large_float32, into=partial(_write_to_any, "sub"))(partial(_compute, "sub"))
kernel("mul", BACKEND, accepts=large_float32, into=partial(_write_to_any, "mul"))(partial(_compute, "mul"))
kernel("div", BACKEND, accepts=large_float32, into=partial(_write_to_any, "div"))(partial(_compute, "div"))


@minimum(LEAST_OF_LERP)
def two_float32_and_number(a: Array, b: Array, weight: Scalar) -> bool:
    """Two contiguous float32 arrays of one shape, of at least {minimum} elements, and a number."""
    if type(weight) not in (float, int) or a.size < LEAST_OF_LERP or a.shape != b.shape:
        return False
    return is_plain(a) and is_plain(b)


@kernel("lerp", BACKEND, accepts=two_float32_and_number)
def lerp(a: Array, b: Array, weight: Scalar) -> Array:
    """Return a + weight · (b - a)."""
    return elementwise("lerp", _lerp, ELEMENT, a, b, numbers=(1, 1, float(weight)))

"""take_along, add_along; see src/elementwise/along_f32.c."""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import Array
from tallow.errors import DimensionError, ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.threads import ELEMENT, by_steps
from tallow.kernels.library import BACKEND, POINTER, SIZE, CFunction, function
from tallow.kernels.table import kernel, minimum

_take_along = function("tl_take_along_f32", None, *[POINTER] * 3, *[SIZE] * 8)
_add_along = function("tl_add_along_f32", None, *[POINTER] * 3, *[SIZE] * 8)
INT64 = np.dtype(np.int64)
INDEX = INT64.itemsize
LEAST = 1 << 12  # elements; a call takes longer than NumPy with fewer
COLUMNS = 16  # floats of a line of the caches: threads divide columns by them


@minimum(LEAST)
def many_of_float32(x: Array, index: Array, axis: int) -> bool:
    """A float32 array, contiguous or of no more elements than are taken, and an index that takes at least {minimum}."""
    taken = math.prod(_shape_of_taken(x, index, axis))
    return taken >= LEAST and x.dtype == FLOAT32 and (x.flags.carray or x.size <= taken)


@kernel("take_along", BACKEND, accepts=many_of_float32)
def take_along(x: Array, index: Array, axis: int) -> Array:
    """Compute tallow.ops.axis_index.take_along_array."""
    places = checked_places("take_along", index, x.shape[axis])
    y = np.empty(_shape_of_taken(x, index, axis), FLOAT32)
    if y.size:
        take(*_merged("take_along", contiguous(x), places, y, axis))
    return y


def float32_writable(x: Array, index: Array, y: Array, axis: int) -> bool:
    """A contiguous float32 array, and another one of what is added."""
    return x.dtype == FLOAT32 and x.flags.carray and y.dtype == FLOAT32 and isinstance(y, np.ndarray)


@kernel("add_along", BACKEND, accepts=float32_writable)
def add_along(x: Array, index: Array, y: Array, axis: int) -> None:
    """Compute tallow.ops.axis_index.add_along_array."""
    places = checked_places("add_along", index, x.shape[axis])
    if not float32_writable(x, index, y, axis) or y.shape != _shape_of_taken(x, index, axis):
        raise ShapeError(f"add_along: {y.dtype} {y.shape} for a {x.dtype} {x.shape} and an index {index.shape}")
    if y.size:
        add(*_merged("add_along", x, places, contiguous(y), axis))


def _shape_of_taken(x: Array, index: Array, axis: int) -> tuple[int, ...]:
    return index.shape if index.ndim == x.ndim else (*x.shape[:axis], index.size, *x.shape[axis + 1 :])


def _merged(name: str, x: Array, places: Array, y: Array, axis: int) -> tuple[Array, Array, Array]:
    """Return views of the arrays as `take` and `add` take them; a full index has as many elements as y."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if (y.shape[:axis], y.shape[axis + 1 :]) != (before, after):
        raise ShapeError(f"{name}: an index {places.shape} for an array {x.shape} along axis {axis}")
    outer, inner = math.prod(before), math.prod(after)
    of_y = (outer, y.shape[axis], inner)
    is_full = x.ndim > 1 and places.ndim == x.ndim
    return (
        x.reshape(outer, x.shape[axis], inner),
        places.reshape(of_y) if is_full else places.reshape(-1),
        y.reshape(of_y),
    )


def checked_places(name: str, index: Array, size: int) -> Array:
    """Return the index for C. Raises DimensionError for a place outside of the axis."""
    places = np.ascontiguousarray(index, INT64)
    # As an unsigned number, a negative place is larger than any size.
    if places.size and int(places.view(np.uint64).max()) >= size:
        raise DimensionError(f"{name}: an index lies outside the {size} places of the axis")
    return places


def take(x: Array, places: Array, y: Array) -> None:
    """Take y (A, N, B) from x (A, M, B), at checked places (N,) or (A, N, B). All arrays are contiguous."""
    _run(_take_along, x, places, y)


def add(x: Array, places: Array, y: Array) -> None:
    """Add y (A, N, B) to x (A, M, B), as `take` takes it."""
    _run(_add_along, x, places, y)


def _run(function: CFunction, x: Array, places: Array, y: Array) -> None:
    outer, size, inner = x.shape
    count = y.shape[1]
    by_outer, by_count, by_inner = (count * inner, inner, 1) if places.ndim == 3 else (0, 1, 0)
    arguments = (x, y, places, outer, size, count, inner, inner, by_outer, by_count, by_inner)
    work = ELEMENT * y.size
    # Threads write to other parts of the outer axis; if there is but one, of what is taken, or of the inner axis.
    if outer > 1:
        steps = ((0, size * inner * ITEM, 0), (1, count * inner * ITEM, 0), (2, by_outer * INDEX, 0), (3, -1, -1))
        by_steps(function, arguments, work, outer, *steps)
    elif function is _take_along:
        by_steps(function, arguments, work, count, (1, inner * ITEM, 0), (2, by_count * INDEX, 0), (5, -1, -1))
    else:
        steps, groups = ((0, ITEM, 0), (1, ITEM, 0), (2, by_inner * INDEX, 0), (6, -1, -1)), -(-inner // COLUMNS)
        by_steps(function, arguments, work, groups, *steps, group=COLUMNS, length=inner)

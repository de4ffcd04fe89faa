"""add, sub, mul, div of large arrays; see src/elementwise/arithmetic_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array, Scalar
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, is_plain
from tallow.kernels.bindings.threads import ELEMENT, by_rows
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, function
from tallow.kernels.table import kernel, minimum
from tallow.kernels.threads import thread_count

# Of elements. NumPy in WASM takes twice as long with more. Natively it is as fast, on one thread.
LEAST = 1 << 17 if BACKEND == "wasm" else 1 << 19

_functions = {
    name: function(f"tl_{name}_f32", None, *[POINTER] * 3, SIZE, FLOAT) for name in ("add", "sub", "mul", "div")
}


@minimum(LEAST)
def large_float32(a: Array | Scalar, b: Array | Scalar) -> bool:
    """A contiguous float32 array of at least {minimum} elements, and one alike or a number; natively two threads."""
    return (BACKEND == "wasm" or thread_count() > 1) and _is_large(a, b)


def _is_large(a: Array | Scalar, b: Array | Scalar) -> bool:
    if not (isinstance(a, np.ndarray) and a.size >= LEAST and is_plain(a)):
        return False
    return type(b) in (float, int) or (isinstance(b, np.ndarray) and b.shape == a.shape and is_plain(b))


def _compute(name: str, a: Array, b: Array | Scalar) -> Array:
    if not _is_large(a, b):
        raise ShapeError(
            f"{name}: the arrays are not float32 of one shape", hint="call kernels.run, which checks first"
        )
    y = np.empty(a.shape, FLOAT32)
    is_array = isinstance(b, np.ndarray)
    number = 0.0 if is_array else float(b)
    by_rows(_functions[name], (y, a, b if is_array else None), a.size, ELEMENT * a.size, number)
    return y


@kernel("add", BACKEND, accepts=large_float32)
def add(a: Array, b: Array | Scalar) -> Array:
    """Return a + b, elementwise."""
    return _compute("add", a, b)


@kernel("sub", BACKEND, accepts=large_float32)
def sub(a: Array, b: Array | Scalar) -> Array:
    """Return a - b, elementwise."""
    return _compute("sub", a, b)


@kernel("mul", BACKEND, accepts=large_float32)
def mul(a: Array, b: Array | Scalar) -> Array:
    """Return a · b, elementwise."""
    return _compute("mul", a, b)


@kernel("div", BACKEND, accepts=large_float32)
def div(a: Array, b: Array | Scalar) -> Array:
    """Return a / b, elementwise."""
    return _compute("div", a, b)

"""add, sub, mul, div of large arrays; see src/elementwise/arithmetic_f32.c."""

from __future__ import annotations

from functools import partial

import numpy as np

from tallow.dtypes import Array, Scalar
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, is_plain
from tallow.kernels.bindings.threads import ELEMENT, by_rows
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, function
from tallow.kernels.on_arrays import address
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


def _write(name: str, a: Array, b: Array | Scalar, y: Array) -> None:
    """Compute into `y`: an operand, or memory that neither shares."""
    if not _is_large(a, b):
        raise ShapeError(
            f"{name}: the arrays are not float32 of one shape", hint="call kernels.run, which checks first"
        )
    is_array = isinstance(b, np.ndarray)
    number = 0.0 if is_array else float(b)
    by_rows(_functions[name], (y, a, b if is_array else None), a.size, ELEMENT * a.size, number)


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
    return np.may_share_memory(x, y) and address(x) != address(y)


# a + b and so on, elementwise
kernel("add", BACKEND, accepts=large_float32, into=partial(_write_to_any, "add"))(partial(_compute, "add"))
kernel("sub", BACKEND, accepts=large_float32, into=partial(_write_to_any, "sub"))(partial(_compute, "sub"))
kernel("mul", BACKEND, accepts=large_float32, into=partial(_write_to_any, "mul"))(partial(_compute, "mul"))
kernel("div", BACKEND, accepts=large_float32, into=partial(_write_to_any, "div"))(partial(_compute, "div"))

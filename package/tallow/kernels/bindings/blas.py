"""Products by NumPy's BLAS on the threads of the kernels.

A BLAS has threads of its own, which keep their processors for some time after each product, and so hold up the kernels
that follow. Here the BLAS computes on one thread, and its calls are divided. Only natively, and if the package
threadpoolctl can set the number of threads of NumPy's BLAS.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings import native_threads
from tallow.kernels.bindings.threads import bounds_of_parts, threads_for
from tallow.kernels.threads import blas_libraries, thread_count

# With fewer multiplications OpenBLAS, which NumPy's wheels have, uses one thread by itself.
WORTH_DIVIDING = 1 << 18
# OpenBLAS computes products of up to 10^6 multiplications in another order. So a part has more than that, and counts
# as an eighth of the work: results are the same for any number of threads.
SHARE = 0.125
MUCH_LARGER = 4
# Rows or columns that are divided together. At a multiple of OpenBLAS's tiles the sums have the order that they have in
# the whole product: rows always, columns only in float32. Its functions for Haswell, also used on AMD's processors
# with AVX2, sum the columns at both ends of a product in another order.
GROUP = 24
CORES_WITH_AVX2 = ("Haswell", "Zen")
FLOAT32 = np.dtype(np.float32)
FLOATS = (FLOAT32, np.dtype(np.float64))


class _Library:
    """A BLAS library's number of threads. The functions of OpenBLAS take a tenth of the time of threadpoolctl's."""

    def __init__(self, controller: Any) -> None:
        self.get_num_threads: Callable[[], int] = controller.get_num_threads
        self.set_num_threads: Callable[[int], None] = controller.set_num_threads
        self.divides_columns = getattr(controller, "architecture", None) not in CORES_WITH_AVX2
        if getattr(controller, "threading_layer", None) == "pthreads":
            for before, after in product(("", "scipy_"), ("", "64_", "_64")):
                names = [f"{before}openblas_{verb}_num_threads{after}" for verb in ("get", "set")]
                if all(hasattr(controller.dynlib, name) for name in names):
                    self.get_num_threads = ctypes.PYFUNCTYPE(ctypes.c_int)((names[0], controller.dynlib))
                    self.set_num_threads = ctypes.PYFUNCTYPE(None, ctypes.c_int)((names[1], controller.dynlib))


@cache
def _libraries() -> list[Any]:
    return [_Library(each) for each in blas_libraries() or []]


@cache
def has_short_vectors() -> bool:
    """Return whether NumPy's OpenBLAS says that it uses its code for AVX2, as 0.3.31 does on a Zen 5."""
    library = ctypes.CDLL(sys.modules["numpy._core._multiarray_umath"].__file__)  # and what it is linked with
    for before, after in product(("scipy_", ""), ("64_", "")):
        core_name = getattr(library, f"{before}openblas_get_corename{after}", None)
        if core_name is not None:
            core_name.restype = ctypes.c_char_p
            return core_name().decode() in CORES_WITH_AVX2
    return False


class _OneThread:
    """While any caller is inside, every BLAS computes on one thread."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = threading.Lock(), 0, list[int]()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = [library.get_num_threads() for library in _libraries()]
                for library in _libraries():
                    library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                for library, number in zip(_libraries(), self._before, strict=True):
                    library.set_num_threads(number)


_one_thread = _OneThread()


def is_divided(work: int) -> bool:
    """Return whether a product of so many multiplications is divided among threads, or at least keeps BLAS to one."""
    return work >= WORTH_DIVIDING and thread_count() > 1 and bool(_libraries())


def large_products(a: Array, b: Array) -> bool:
    """float32 or float64 matrices that fit and have several terms, large enough for several threads, and a BLAS."""
    if a.ndim < 2 or b.ndim < 2 or a.dtype != b.dtype or a.dtype not in FLOATS:
        return False
    return 1 < a.shape[-1] == b.shape[-2] and is_divided(a.size * b.shape[-1])


def matmul(a: Array, b: Array) -> Array:
    """Return a @ b.

    Shapes: (..., M, K) @ (..., K, N) -> (..., M, N), batch dimensions broadcast
    """
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        return matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    batch = () if a.ndim == b.ndim == 2 else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    c = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    _divide(a, b, c)
    return c


def matmul_into(a: Array, b: Array, c: Array) -> None:
    """Write a @ b to c. Shapes: (M, K) @ (K, N) -> (M, N)"""
    if large_products(a, b):
        _divide(a, b, c)
    else:
        np.matmul(a, b, out=c)


def _divide(a: Array, b: Array, c: Array) -> None:
    work = SHARE * c.size * a.shape[-1]
    if threads_for(work) == 1:
        with _one_thread:
            np.matmul(a, b, out=c)
        return
    axis = _axis_to_divide(c.shape, c.dtype == FLOAT32 and _libraries()[0].divides_columns)
    length, group = c.shape[axis], GROUP if axis >= -2 else 1
    count = max(length // group, 1)

    starts = [group * first for first in bounds_of_parts(count, work)[:-1]]
    of_parts = [
        (_slice(a, axis, start, end, -1), _slice(b, axis, start, end, -2), _slice(c, axis, start, end, None))
        for start, end in pairwise([*starts, length])
    ]
    with _one_thread:
        native_threads.run(np.matmul, of_parts)


def _axis_to_divide(shape: tuple[int, ...], may_be_columns: bool) -> int:
    """Return the axis of a product to divide, from its end: a long one of the batch, or one of the matrix.

    Each thread copies all of the operand that is not divided, as BLAS does before it multiplies: so columns if that
    copy is much smaller. Else rows: threads that write columns of one row write to the same cache line.
    """
    batch = max(range(-len(shape), -2), key=lambda axis: shape[axis], default=None)
    if batch is not None and shape[batch] >= thread_count():
        return batch
    rows, columns = shape[-2:]
    is_wide = columns >= MUCH_LARGER * rows or rows < min(columns, 2 * GROUP * thread_count())
    return -1 if is_wide and may_be_columns else -2


def _slice(array: Array, axis: int, first: int, last: int, inner: int | None) -> Array:
    """Return a part of an axis of the product, or all where the operand is the same for all parts.

    `inner` is the axis that the operand does not share with the product.
    """
    if axis == inner or -axis > array.ndim or array.shape[axis] == 1:
        return array
    return array[(..., slice(first, last), *[slice(None)] * (-axis - 1))]

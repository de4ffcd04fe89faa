"""CuPy 14.2's results where they differ from NumPy's, computed on NumPy arrays.

`cupy_like` calls these functions in place of NumPy's functions of the same names. Each names the file and function in
CuPy's source that it follows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# ------------------------------------------------------------------------------------------------------- arithmetic


def is_float(*operands: Any) -> bool:
    return np.result_type(*operands).kind == "f"


def floor_divide(x: Any, y: Any, **kwargs: Any) -> Any:
    """For floats return floor(x / y), so 1 // 0.1 is 10 (_core/include/cupy/carray.cuh, _floor_divide)."""
    if not is_float(x, y):
        return np.floor_divide(x, y, **kwargs)
    return np.floor(np.true_divide(x, y), **kwargs)


def remainder(x: Any, y: Any, **kwargs: Any) -> Any:
    """For floats return x - floor(x / y) y, which is NaN for an infinite y (_core/_routines_math.pyx, _remainder)."""
    if not is_float(x, y):
        return np.remainder(x, y, **kwargs)
    return np.subtract(x, floor_divide(x, y) * y, **kwargs)


def divmod_(x: Any, y: Any, **kwargs: Any) -> Any:
    return floor_divide(x, y, **kwargs), remainder(x, y, **kwargs)


def fmod(x: Any, y: Any, **kwargs: Any) -> Any:
    """For integers compute in float64, whose significand has 53 bits (_math/arithmetic.py, fmod)."""
    if is_float(x, y):
        return np.fmod(x, y, **kwargs)
    dtype = np.result_type(x, y)
    rest = np.fmod(np.asarray(x, np.float64), np.where(np.equal(y, 0), 1, np.asarray(y, np.float64)))
    return np.copy(np.where(np.equal(y, 0), 0, rest).astype(dtype), **kwargs)


def clip(x: Any, low: Any = None, high: Any = None, out: Any = None) -> Any:
    """Clip values; ignore a bound that is NaN (_core/_routines_math.pyx, _clip)."""
    dtype = np.result_type(*(a for a in (x, low, high) if a is not None))
    low, high = -np.inf if low is None else low, np.inf if high is None else high
    value = np.where(np.greater(low, high), high, np.where(x < low, low, np.where(x > high, high, x))).astype(dtype)
    if out is None:
        return value
    out[...] = value
    return out


def extreme_at(ufunc: np.ufunc, target: Array, index: Any, values: Any) -> None:
    """maximum.at and minimum.at: ignore NaN and round float64 to float32 (_core/include/cupy/atomics.cuh, fmaxf)."""
    if target.dtype.kind != "f":
        ufunc.at(target, index, values)
        return
    target[index] = target[index].astype(np.float32)
    {"maximum": np.fmax, "minimum": np.fmin}[ufunc.__name__].at(target, index, np.asarray(values, np.float32))


# ---------------------------------------------------------------------------------------------------------- sorting


def argsort(x: Array, axis: int | None = -1, kind: str | None = None) -> Array:
    """Sort a vector by bits, so NaN with the sign bit set comes first (cuda/cupy_thrust.cu, _argsort)."""
    order = np.argsort(x, axis=axis, kind="stable")
    if x.ndim == 1 and x.dtype.kind == "f":
        first = np.isnan(x) & np.signbit(x)
        order = np.concatenate([np.flatnonzero(first), order[~first[order]]])
    return order


def argpartition(x: Array, kth: int, axis: int = -1) -> Array:
    """Compare elements by <, so NaN breaks the order unless CuPy sorts all elements (_core/_routines_sorting.pyx)."""
    length = x.shape[axis]
    first = max(32, 1 << (kth % max(length, 1)).bit_length())
    parts = 512
    while parts > 0 and length // parts < first + 128:
        parts //= 2
    if length < 32 or parts < 1 or first >= 1024 or x.dtype.kind != "f":
        return np.argpartition(x, kth, axis=axis)
    return np.argpartition(np.where(np.isnan(x), -np.inf, x), kth, axis=axis)


def argmax(x: Array, axis: int | None = None, **kwargs: Any) -> Any:
    """Return the last NaN if several blocks reduce (_core/_routines_statistics.pyx, my_argmax_float)."""
    return _arg_of_extreme(np.argmax, x, axis, kwargs)


def argmin(x: Array, axis: int | None = None, **kwargs: Any) -> Any:
    return _arg_of_extreme(np.argmin, x, axis, kwargs)


def _arg_of_extreme(function: Callable[..., Any], x: Array, axis: int | None, kwargs: dict[str, Any]) -> Any:
    index = function(x, axis=axis, **kwargs)
    length = x.size if axis is None else x.shape[axis]
    if x.dtype.kind != "f" or length <= 512:
        return index
    nan = np.isnan(x)
    last = length - 1 - np.argmax(np.flip(nan, axis), axis=axis, **kwargs)
    return np.where(nan.any(axis=axis, **kwargs), last, index)


def isin(elements: Array, test_elements: Array, assume_unique: bool = False, invert: bool = False) -> Array:
    """Search the sorted test elements by bisection (_logic/truth.py; _sorting/search.py, _exists_kernel)."""
    tests = test_elements.reshape(-1)
    if not tests.size:
        return np.full(elements.shape, invert)
    tests = tests[argsort(tests)]
    left, right = np.zeros(elements.shape, np.intp), np.full(elements.shape, tests.size - 1)
    while (left < right).any():
        middle = (left + right) // 2
        beyond = tests[middle] < elements
        left, right = np.where(beyond, middle + 1, left), np.where(beyond, right, middle)
    return (tests[right] == elements) ^ invert


# --------------------------------------------------------------------------------------------------- linear algebra

_errors = threading.local()


@contextmanager
def errstate(*, linalg: str) -> Iterator[None]:
    """Emulates cupyx.errstate."""
    before = getattr(_errors, "linalg", "ignore")
    _errors.linalg = linalg
    try:
        yield
    finally:
        _errors.linalg = before


def _or_garbage(function: Callable[[Array], Any], garbage: Callable[..., Any]) -> Callable[..., Any]:
    """Return garbage where NumPy raises, unless errstate(linalg="raise") is active (linalg/_util.py).

    Checking for errors makes CuPy wait for the device.
    """

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except np.linalg.LinAlgError:
            if getattr(_errors, "linalg", "ignore") == "raise":
                raise np.linalg.LinAlgError("Error reported by getrf in cuSOLVER. devInfo = [1].") from None
            return garbage(*args)

    return call


def _without_nan(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return finite values for a matrix with a NaN, as cuSOLVER's getrf does: it passes over a NaN as a pivot."""
    return lambda a, *args: np.nan_to_num(function(a, *args)) if np.isnan(a).any() else function(a, *args)


def _solve(a: Array, b: Array) -> Array:
    """Solve without broadcasting, except for a vector (linalg/_solve.py, solve; cublas.py, batched_gesv)."""
    if b.ndim == 1:
        b = np.broadcast_to(b, a.shape[:-1])
        return np.linalg.solve(a, b[..., None])[..., 0]
    if a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
    if a.ndim > 2 and a.size and not b.size:
        raise ZeroDivisionError("division by zero")  # from arange(start, start, 0), the addresses of b
    return np.linalg.solve(a, b)


def _complex(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """eig and eigvals: return complex values always, except for an empty array (linalg/_eigenvalue.py, _geev)."""

    def call(a: Array) -> Any:
        result = function(a)
        wide = np.result_type(a.dtype, np.complex64) if a.size else a.dtype
        return tuple(x.astype(wide) for x in result) if isinstance(result, tuple) else result.astype(wide)

    return call


LINALG: dict[str, Callable[..., Any]] = {
    "cholesky": _or_garbage(np.linalg.cholesky, np.tril),  # potrf stops at the first minor that is not positive
    "eig": _complex(np.linalg.eig),
    "eigvals": _complex(np.linalg.eigvals),
    "inv": _or_garbage(_without_nan(np.linalg.inv), np.ones_like),
    "solve": _or_garbage(_without_nan(_solve), lambda a, b: np.ones_like(b)),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "argmax": argmax, "argmin": argmin, "argpartition": argpartition, "argsort": argsort, "clip": clip, "isin": isin,
}  # fmt: skip
UFUNCS: dict[str, Callable[..., Any]] = {
    "divmod": divmod_, "floor_divide": floor_divide, "fmod": fmod, "mod": remainder, "remainder": remainder,
}  # fmt: skip
OPERATORS = {"mod": "remainder", "floordiv": "floor_divide", "divmod": "divmod"}  # Python's operators: ufuncs

# --------------------------------------------------------------------------------------- calls that cannot be captured

# CuPy computes products of floats and factorizations with cuBLAS and cuSOLVER, which it does not allow to be captured
# (cupy_backends/cuda/libs/cublas.pyx, setStream).
BY_CUBLAS = {"dot", "einsum", "inner", "matmul", "tensordot", "vdot"}
# Bytes; CuPy concatenates more than eight smaller arrays by a table of addresses, which the host writes.
SMALL = 2 << 20


def concatenates_by_table(arrays: Any) -> bool:
    """Return whether the host writes a table of addresses (_core/_routines_manipulation.pyx, _concatenate)."""
    same_dtype = len({x.dtype for x in arrays}) == 1
    return len(arrays) > 8 and same_dtype and sum(x.nbytes for x in arrays) < SMALL * len(arrays)


def write_synchronizes(key: Any, is_on_device: bool) -> bool:
    """Return whether x[key] = value waits for the device or copies from the host.

    A boolean mask makes CuPy count its elements; with index arrays, a value on the host is copied to the device
    (_core/_routines_indexing.pyx, _scatter_op_mask_single, _scatter_op_single).
    """
    arrays = [k for k in (key if isinstance(key, tuple) else (key,)) if isinstance(k, np.ndarray)]
    return any(k.dtype == bool for k in arrays) or (bool(arrays) and not is_on_device)

"""fft_complex, fft_of_real, fft_to_real, over the last axis; see src/fourier/fft_f32.c."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.threads import by_steps
from tallow.kernels.library import BACKEND, FLOAT, INT, POINTER, SIZE, CFunction, function
from tallow.kernels.table import PLANS, kernel

_fft = function("tl_fft_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, INT, POINTER, FLOAT)
_rfft = function("tl_rfft_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, POINTER, FLOAT)
_irfft = function("tl_irfft_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, POINTER, FLOAT)
_scratch = function("tl_fft_scratch", SIZE, SIZE)
COMPLEX64 = np.dtype(np.complex64)
RADICES = (4, 5, 3, 2)
FEW_ROWS = 8  # fewer leave most lanes of a vector idle
LONG = 1 << 12  # numbers of a row; longer ones leave the caches


def rows_of_complex64(x: Array, dims: tuple[int, ...], norm: str, inverse: bool) -> bool:
    """A complex64 array of 8 rows or more along the last axis, whose length has no factors but 2, 3 and 5."""
    is_usual = x.dtype is COMPLEX64 and len(dims) == 1 and _are_rows(x, dims[0])
    return is_usual and _factors(x.shape[-1]) is not None


def rows_of_float32(x: Array, axis: int, norm: str) -> bool:
    """A float32 array of 8 rows or more along the last axis, of an even length without factors but 2, 3 and 5."""
    n = x.shape[axis]
    return x.dtype is FLOAT32 and _are_rows(x, axis) and n % 2 == 0 and _factors(n // 2) is not None


def rows_of_half_spectra(x: Array, n: int, axis: int, norm: str) -> bool:
    """A complex64 array of 8 rows or more along the last axis, for an even `n` without factors but 2, 3 and 5."""
    fits = x.dtype is COMPLEX64 and n % 2 == 0 and x.shape[axis] == n // 2 + 1 and _are_rows(x, axis)
    return fits and _factors(n // 2) is not None


def _are_rows(x: Array, axis: int) -> bool:
    n = x.shape[axis]
    return axis in (-1, x.ndim - 1) and 2 <= n <= LONG and x.size >= FEW_ROWS * n


@lru_cache(PLANS)
def _factors(n: int) -> tuple[int, ...] | None:
    """Return the radices of a transform, or None if it takes others."""
    factors = []
    for radix in RADICES:
        while n % radix == 0:
            factors.append(radix)
            n //= radix
    return tuple(factors) if n == 1 else None


@lru_cache(PLANS)
def _tables(n: int, real: bool) -> tuple[Array, Array]:
    """Return the factors, and the roots of one as the C file describes them."""
    left = n // 2 if real else n
    factors = _factors(left) or ()
    roots = [np.arange(n // 4 + 1) / n] if real else []
    for radix in factors:
        left //= radix
        roots.append((np.arange(left)[:, None] * np.arange(1, radix) / (left * radix)).ravel())
    angles = np.concatenate([*roots, [0.0]])  # never empty
    return np.array([*factors, 0], np.uintp), np.exp(-2j * np.pi * angles).astype(COMPLEX64).view(FLOAT32)


def _floats(x: Array) -> Array:
    return contiguous(np.ascontiguousarray(x).view(FLOAT32))


def _scale(n: int, norm: str, inverse: bool) -> float:
    return n**-0.5 if norm == "ortho" else 1 / n if (norm == "backward") is inverse else 1.0


def _run(function: CFunction, y: Array, x: Array, n: int, real: bool, numbers: tuple[int, ...], scale: float) -> Array:
    """Transform rows: x and y are contiguous arrays of floats."""
    factors, roots = _tables(n, real)
    rows = math.prod(x.shape[:-1])
    steps = (0, y.shape[-1] * ITEM, 0), (1, x.shape[-1] * ITEM, 0), (2, -1, -1)
    work = 5.0 * rows * n * math.log2(n)
    arguments = (y, x, rows, n, factors, roots, *numbers)
    by_steps(function, arguments, work, rows, *steps, scratch=_scratch(n), numbers=(scale,))
    return y


@kernel("fft_complex", BACKEND, accepts=rows_of_complex64)
def fft_complex(x: Array, dims: tuple[int, ...], norm: str, inverse: bool) -> Array:
    """Compute tallow.ops.fourier.fft_complex_array."""
    n, floats = x.shape[-1], _floats(x)
    y = np.empty(floats.shape, FLOAT32)
    return _run(_fft, y, floats, n, False, (1 if inverse else -1,), _scale(n, norm, inverse)).view(COMPLEX64)


@kernel("fft_of_real", BACKEND, accepts=rows_of_float32)
def fft_of_real(x: Array, axis: int, norm: str) -> Array:
    """Compute tallow.ops.fourier.fft_of_real_array."""
    n = x.shape[-1]
    y = np.empty((*x.shape[:-1], n + 2), FLOAT32)
    return _run(_rfft, y, contiguous(x), n, True, (), _scale(n, norm, False)).view(COMPLEX64)


@kernel("fft_to_real", BACKEND, accepts=rows_of_half_spectra)
def fft_to_real(x: Array, n: int, axis: int, norm: str) -> Array:
    """Compute tallow.ops.fourier.fft_to_real_array."""
    y = np.empty((*x.shape[:-1], n), FLOAT32)
    return _run(_irfft, y, _floats(x), n, True, (), _scale(n, norm, True))

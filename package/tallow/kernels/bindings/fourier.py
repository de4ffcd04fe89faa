"""fft_complex, fft_of_real, fft_to_real over the last axis, and spectra_of_frames; see src/fourier/fft_f32.c."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.threads import by_range, by_steps, is_short
from tallow.kernels.library import BACKEND, FLOAT, INT, POINTER, SIZE, CFunction, function
from tallow.kernels.table import PLANS, kernel

_fft = function("tl_fft_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, INT, POINTER, FLOAT)
_rfft = function("tl_rfft_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, POINTER, FLOAT)
_irfft = function("tl_irfft_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, POINTER, FLOAT)
_stft = function(
    "tl_stft_f32", None, POINTER, POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, POINTER, FLOAT
)
_scratch = function("tl_fft_scratch", SIZE, SIZE)
_fft_row = function("tl_fft_row_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, INT, POINTER, FLOAT)
_rfft_row = function("tl_rfft_row_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, POINTER, FLOAT)
_irfft_row = function("tl_irfft_row_f32", None, POINTER, POINTER, SIZE, SIZE, POINTER, POINTER, POINTER, FLOAT)
_lanes_of_row = function("tl_fft_lanes", SIZE)
COMPLEX64 = np.dtype(np.complex64)
RADICES = (4, 5, 3, 2)
FEW_ROWS = 8  # fewer leave most lanes of a vector idle, if each has a row
LONG = 1 << 12  # numbers of a row; longer ones leave the caches, if each lane has a row
LONGEST = 1 << 18  # numbers of a row, and of its roots; NumPy is as quick with more


def rows_of_complex64(x: Array, dims: tuple[int, ...], norm: str, inverse: bool) -> bool:
    """A complex64 array of 8 rows of at most 4,096 numbers, of factors 2, 3 and 5 alone; or of others in whole blocks.

    A block is the square of the lanes of a vector: 16 to 256 numbers. With fewer or longer rows, all lanes are of one.
    """
    if x.dtype is not COMPLEX64 or len(dims) != 1 or dims[0] not in (-1, x.ndim - 1):
        return False
    n = x.shape[-1]
    return _has_plan(n, n, x.size)


def rows_of_float32(x: Array, axis: int, norm: str) -> bool:
    """A float32 array along the last axis, whose length is twice what complex64 needs."""
    if x.dtype is not FLOAT32 or axis not in (-1, x.ndim - 1):
        return False
    n = x.shape[axis]
    return n % 2 == 0 and _has_plan(n, n // 2, x.size)


def rows_of_half_spectra(x: Array, n: int, axis: int, norm: str) -> bool:
    """A complex64 array along the last axis, for an `n` that is twice what complex64 needs."""
    if x.dtype is not COMPLEX64 or n % 2 or axis not in (-1, x.ndim - 1) or x.shape[axis] != n // 2 + 1:
        return False
    return _has_plan(n, n // 2, x.size // x.shape[axis] * n)


def float32_frames(x: Array, window: Array, hop: int, norm: str) -> bool:
    """Signals and a window in float32, its length even, without factors but 2, 3 and 5, and at most 4,096."""
    n = len(window)
    fits = x.dtype is FLOAT32 and window.dtype is FLOAT32 and 2 <= n <= LONG and n % 2 == 0
    return fits and x.size > 0 and _factors(n // 2) is not None


def _has_plan(n: int, numbers: int, size: int) -> bool:
    """Return whether rows of `n` numbers, of which a transform has so many complex ones, are computed here."""
    if size >= FEW_ROWS * n and n <= LONG:
        return n >= 2 and _factors(numbers) is not None
    return size > 0 and n <= LONGEST and numbers % _block() == 0 and _factors(numbers) is not None


@lru_cache(1)
def _block() -> int:
    """Return the numbers of which the length of a row is a multiple, if all lanes are of one row."""
    lanes: int = _lanes_of_row()
    return lanes * lanes


@lru_cache(PLANS)
def _factors(n: int) -> tuple[int, ...] | None:
    """Return the radices of a transform, or None if it takes others."""
    factors = []
    for radix in RADICES:
        while n % radix == 0:
            factors.append(radix)
            n //= radix
    return tuple(factors) if n == 1 else None


def _roots_of_factors(n: int, factors: tuple[int, ...]) -> list[Array]:
    """Return the angles of the roots that each factor of `n` needs, in turns."""
    roots = []
    for radix in factors:
        n //= radix
        roots.append((np.arange(n)[:, None] * np.arange(1, radix) / (n * radix)).ravel())
    return roots


def _packed(factors: tuple[int, ...], turns: list[Array]) -> tuple[Array, Array]:
    angles = np.concatenate([*turns, [0.0]])  # never empty
    return np.array([*factors, 0], np.uintp), np.exp(-2j * np.pi * angles).astype(COMPLEX64).view(FLOAT32)


@lru_cache(PLANS)
def _tables(n: int, real: bool) -> tuple[Array, Array]:
    """Return the factors, and the roots of one as the C file describes them: a row for each lane."""
    numbers = n // 2 if real else n
    factors = _factors(numbers) or ()
    turns = [np.arange(n // 4 + 1) / n] if real else []
    return _packed(factors, turns + _roots_of_factors(numbers, factors))


@lru_cache(16)  # of 4 MB at most
def _tables_of_row(n: int, real: bool) -> tuple[Array, Array]:
    """Return the factors, and the roots of one as the C file describes them: a row for all lanes."""
    numbers, lanes = n // 2 if real else n, math.isqrt(_block())
    left = numbers // lanes
    factors = _factors(left) or ()
    turns = np.arange(left)[:, None] * np.arange(lanes) / numbers
    roots = np.exp(-2j * np.pi * turns).astype(COMPLEX64)
    of_lanes = np.concatenate([roots.real, roots.imag], 1).ravel()
    first = [np.arange(n // 4 + 1) / n] if real else []
    others = _roots_of_factors(lanes, (4, lanes // 4)) + _roots_of_factors(left, factors)
    integers, packed = _packed(factors, first + others)
    before = 2 * (n // 4 + 1) if real else 0
    return integers, np.concatenate([packed[:before], of_lanes, packed[before:]])


def _floats(x: Array) -> Array:
    return contiguous(np.ascontiguousarray(x).view(FLOAT32))


def _scale(n: int, norm: str, inverse: bool) -> float:
    return n**-0.5 if norm == "ortho" else 1 / n if (norm == "backward") is inverse else 1.0


def _run(
    functions: tuple[CFunction, CFunction],
    y: Array,
    x: Array,
    n: int,
    real: bool,
    numbers: tuple[int, ...],
    scale: float,
) -> Array:
    """Transform rows, by the function for many or for long ones: x and y are contiguous arrays of floats."""
    rows = x.size // x.shape[-1]
    if rows >= FEW_ROWS and n <= LONG:
        function, (factors, roots), scratch = functions[0], _tables(n, real), _scratch(n)
    else:
        function, (factors, roots), scratch = functions[1], _tables_of_row(n, real), 4 * n
    work = _work(rows, n)
    if is_short(work):  # as `by_steps`, whose steps take as long as the transform of a short row
        function.on_arrays(y, x, rows, n, factors, roots, *numbers, np.empty(scratch, FLOAT32), scale)
        return y
    steps = (0, y.shape[-1] * ITEM, 0), (1, x.shape[-1] * ITEM, 0), (2, -1, -1)
    arguments = (y, x, rows, n, factors, roots, *numbers)
    by_steps(function, arguments, work, rows, *steps, scratch=scratch, numbers=(scale,))
    return y


def _work(rows: int, n: int) -> float:
    return 5.0 * rows * n * math.log2(n)


@kernel("fft_complex", BACKEND, accepts=rows_of_complex64)
def fft_complex(x: Array, dims: tuple[int, ...], norm: str, inverse: bool) -> Array:
    """Compute tallow.ops.fourier.fft_complex_array."""
    n, floats = x.shape[-1], _floats(x)
    y, sign = np.empty(floats.shape, FLOAT32), 1 if inverse else -1
    return _run((_fft, _fft_row), y, floats, n, False, (sign,), _scale(n, norm, inverse)).view(COMPLEX64)


@kernel("fft_of_real", BACKEND, accepts=rows_of_float32)
def fft_of_real(x: Array, axis: int, norm: str) -> Array:
    """Compute tallow.ops.fourier.fft_of_real_array."""
    n = x.shape[-1]
    y = np.empty((*x.shape[:-1], n + 2), FLOAT32)
    return _run((_rfft, _rfft_row), y, contiguous(x), n, True, (), _scale(n, norm, False)).view(COMPLEX64)


@kernel("fft_to_real", BACKEND, accepts=rows_of_half_spectra)
def fft_to_real(x: Array, n: int, axis: int, norm: str) -> Array:
    """Compute tallow.ops.fourier.fft_to_real_array."""
    y = np.empty((*x.shape[:-1], n), FLOAT32)
    return _run((_irfft, _irfft_row), y, _floats(x), n, True, (), _scale(n, norm, True))


@kernel("spectra_of_frames", BACKEND, accepts=float32_frames)
def spectra_of_frames(x: Array, window: Array, hop: int, norm: str) -> Array:
    """Compute tallow.ops.fourier.spectra_of_frames_array."""
    (batch, length), n = x.shape, len(window)
    frames = (length - n) // hop + 1
    y = np.empty((batch, frames, n + 2), FLOAT32)
    arrays = (y, contiguous(x), contiguous(window), *_tables(n, True))
    rows, scale = batch * frames, _scale(n, norm, False)
    by_range(_stft, arrays, rows, _work(rows, n), frames, length, hop, n, scratch=_scratch(n), numbers=(scale,))
    return y.view(COMPLEX64)

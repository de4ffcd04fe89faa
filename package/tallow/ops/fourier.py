"""Discrete Fourier transforms over some dims: of complex numbers, of real ones, and back to real ones.

The library of the device computes them: NumPy's pocketfft, or cuFFT; and kernels, if the length has no factors but 2, 3
and 5: many short ones at once, a lane of a vector for each, or one in all lanes. A transform in float32 stays in
complex64.

The matrix of a transform is symmetric, so the transpose of `fft_complex` is itself. The other two are real-linear, and
compute the adjoint: of a half spectrum, each coefficient but the first, and the last of an even size, stands for two.
"""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.kernels.table import kernel, run
from tallow.ops.second_order import Derived
from tallow.ops.strided import window_view
from tallow.ops.table import Array, Result, op

# The normalization of the adjoint transform, by that of the transform.
ADJOINT = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


@kernel("fft_complex", "array")
def fft_complex_array(x: Array, dims: tuple[int, ...], norm: str, inverse: bool) -> Array:
    """Transform over some dims."""
    fft = array_module(x).fft
    if len(dims) == 1:
        return fft.ifft(x, axis=dims[0], norm=norm) if inverse else fft.fft(x, axis=dims[0], norm=norm)
    return fft.ifftn(x, axes=dims, norm=norm) if inverse else fft.fftn(x, axes=dims, norm=norm)


@kernel("fft_of_real", "array")
def fft_of_real_array(x: Array, axis: int, norm: str) -> Array:
    """Return the half spectrum of real numbers."""
    half: Array = array_module(x).fft.rfft(x, axis=axis, norm=norm)
    return half


@kernel("fft_to_real", "array")
def fft_to_real_array(x: Array, n: int, axis: int, norm: str) -> Array:
    """Return the `n` real numbers of a half spectrum."""
    y: Array = array_module(x).fft.irfft(x, n, axis=axis, norm=norm)
    return y


def _transform(x: Array, dims: tuple[int, ...], norm: str, inverse: bool) -> Array:
    y: Array = run("fft_complex", x, dims, norm, inverse) if dims else x
    return y


def _from_real(x: Array, dims: tuple[int, ...], norm: str) -> Array:
    """Return the half spectrum of real numbers."""
    return _transform(run("fft_of_real", x, dims[-1], norm), dims[:-1], norm, False)


def _to_real(x: Array, n: int, dims: tuple[int, ...], norm: str) -> Array:
    """Return the real numbers, `n` along the last of the dims, of a half spectrum."""
    y: Array = run("fft_to_real", _transform(x, dims[:-1], norm, True), n, dims[-1], norm)
    return y


def _weighted(half: Array, n: int, axis: int, factor: float) -> Array:
    """Return a half spectrum of `n` numbers with the coefficients that stand for two multiplied by `factor`."""
    weights = np.full(half.shape[axis], factor, half.real.dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    shape = [1] * half.ndim
    shape[axis] = len(weights)
    return half * array_module(half).asarray(weights.reshape(shape))


@op("", dtypes="keep", refuses="half", batched="dim")
def fft_complex(input: Array, dims: tuple[int, ...], norm: str, inverse: bool) -> Result:
    """Return Σ_n x_n exp(∓2πi k n / N) over each of the dims, real or complex numbers; divided by N, √N or 1.

    Args:  norm: "backward" divides the inverse, "forward" the other one by N, "ortho" both by √N
    """
    return _transform(input, dims, norm, inverse), lambda g: (_transform(g, dims, norm, inverse),)


@fft_complex.linear
def _(array: Array, *, dims: tuple[int, ...], norm: str, inverse: bool) -> Array:
    return _transform(array, dims, norm, inverse)


@op("", dtypes="keep", refuses="half", batched="dim")
def fft_of_real(input: Array, dims: tuple[int, ...], norm: str) -> Result:
    """Return the transform of real numbers; the coefficients up to N // 2 along the last of the dims.

    The others are the conjugates of these.
    """
    n = input.shape[dims[-1]]

    def backward(g: Array) -> tuple[Array]:
        return (_to_real(_weighted(g, n, dims[-1], 0.5), n, dims, ADJOINT[norm]),)

    return _from_real(input, dims, norm), backward


@fft_of_real.linear(unneeded="n")
def _(array: Array, *, dims: tuple[int, ...], norm: str) -> Array:
    return _from_real(array, dims, norm)


@op("", dtypes="keep", refuses="half", batched="dim")
def fft_to_real(input: Array, n: int, dims: tuple[int, ...], norm: str) -> Result:
    """Return the inverse transform of the coefficients up to n // 2 along the last of the dims, which is real."""

    def backward(g: Array) -> tuple[Array]:
        return (_weighted(_from_real(g, dims, ADJOINT[norm]), n, dims[-1], 2.0),)

    return _to_real(input, n, dims, norm), backward


@fft_to_real.linear
def _(array: Array, *, n: int, dims: tuple[int, ...], norm: str) -> Array:
    return _to_real(array, n, dims, norm)


def _frames(x: Array, n: int, hop: int) -> Array:
    view: Array = window_view.function(x, -1, n, hop)[0]
    return view


@kernel("spectra_of_frames", "array")
def spectra_of_frames_array(x: Array, window: Array, hop: int, norm: str) -> Array:
    """Return the half spectra of frames that begin `hop` samples after each other, times the window.

    Shapes:  x (B, L), window (N) -> (B, T, N // 2 + 1)
    """
    spectra: Array = run("fft_of_real", _frames(x, len(window), hop) * window, -1, norm)
    return spectra


def _added(frames: Array, hop: int, length: int) -> Array:
    """Return the sums of frames that begin `hop` samples after each other.  Shapes: (B, T, N) -> (B, length)"""
    batch, count, n = frames.shape
    parts = -(-n // hop)  # frame t adds its part j, `hop` samples, to part t + j of the signal
    total = array_module(frames).zeros((batch, max(count + parts, -(-length // hop)), hop), frames.dtype)
    for j in range(parts):
        part = frames[:, :, j * hop : (j + 1) * hop]
        total[:, j : j + count, : part.shape[-1]] += part
    return total.reshape(batch, -1)[:, :length]


@op("", dtypes="promote", refuses="half")
def spectra_of_frames(input: Array, window: Array, hop: int, norm: str) -> Result:
    """Return the half spectra of the frames of real signals, each multiplied by the window.

    Shapes:  input (B, L), window (N), N at most L -> (B, T, N // 2 + 1)
    """
    n, length = len(window), input.shape[1]

    def backward(g: Array) -> tuple[object, object]:
        d = _to_real(_weighted(g, n, -1, 0.5), n, (-1,), ADJOINT[norm])
        return lambda: _added(d * window, hop, length), lambda: (d * _frames(input, d.shape[-1], hop)).sum(axis=(0, 1))

    return run("spectra_of_frames", input, window, hop, norm), backward


@spectra_of_frames.definition(unneeded="length")
def _(*, input: Derived, window: Derived, n: int, hop: int, norm: str) -> Derived:
    return fft_of_real.call(window_view.call(input, 1, n, hop) * window, (2,), norm)

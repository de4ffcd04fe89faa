"""Fourier transforms. Complex numbers are pairs of tensors, the real and the imaginary part, as in Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.functions.operands import floats
from tallow.nn import functional as F

Complex = tuple[Tensor, Tensor]


class _Transform(tl.autograd.Function):
    """The Fourier transform along the second-to-last axis of pairs (real, imaginary) on the last axis.

    y_k = Σ_n x_n exp(∓2πi k n / N), divided by N for the inverse. The gradient is the adjoint, which is the other
    transform up to the factor N.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, is_inverse: bool) -> Tensor:
        ctx.is_inverse = is_inverse
        return _fft(x, is_inverse)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        N = gradient.shape[-2]
        factor = 1 / N if ctx.is_inverse else N
        return _fft(gradient, not ctx.is_inverse) * factor, None


def _fft(x: Tensor, is_inverse: bool) -> Tensor:
    """Transform with NumPy on any device; the models that use these functions spend little time in them."""
    array = x.detach().cpu().numpy()
    result = (np.fft.ifft if is_inverse else np.fft.fft)(array[..., 0] + 1j * array[..., 1], axis=-1)
    return tl.tensor(np.stack([result.real, result.imag], -1), dtype=x.dtype, device=x.device)


def _fft_axis(x: Complex, axis: int, is_inverse: bool) -> Complex:
    pair = tl.stack(x, -1).movedim(axis if axis >= 0 else axis - 1, -2)
    y = _Transform.apply(pair, is_inverse).movedim(-2, axis if axis >= 0 else axis - 1)
    return y[..., 0], y[..., 1]


def _complex_pair(function: str, x: Any) -> Complex:
    if not isinstance(x, list | tuple) or len(x) != 2:
        raise ArgumentError(f"{function}: expected a pair of tensors, the real and the imaginary part")
    real, imaginary = floats(x[0]), floats(x[1])
    if real.shape != imaginary.shape:
        raise ShapeError(f"{function}: the parts have shapes {tuple(real.shape)} and {tuple(imaginary.shape)}")
    return real, imaginary


def fft(x: Any) -> Complex:
    """Return the Fourier transform along the last axis.

    Shapes:  x, a pair of (..., N) -> the same
    """
    return _fft_axis(_complex_pair("fft", x), -1, is_inverse=False)


def fft2(x: Any) -> Complex:
    """Return the Fourier transform along the last two axes."""
    return _fft_axis(_fft_axis(_complex_pair("fft2", x), -1, is_inverse=False), -2, is_inverse=False)


def ifft2(x: Any) -> Complex:
    """Return the inverse Fourier transform along the last two axes."""
    return _fft_axis(_fft_axis(_complex_pair("ifft2", x), -1, is_inverse=True), -2, is_inverse=True)


def rfft(x: Any, fft_length: int | None = None) -> Complex:
    """Return the Fourier transform of real numbers, padded with zeros or cropped to fft_length.

    Shapes:  x (..., N) -> a pair of (..., fft_length // 2 + 1)
    """
    x = floats(x)
    N = x.shape[-1] if fft_length is None else fft_length
    x = F.pad(x, [0, N - x.shape[-1]])
    real, imaginary = _fft_axis((x, tl.zeros_like(x)), -1, is_inverse=False)
    return real[..., : N // 2 + 1], imaginary[..., : N // 2 + 1]


def irfft(x: Any, fft_length: int | None = None) -> Tensor:
    """Return the inverse of `rfft`.

    Shapes:  x, a pair of (..., N) -> (..., fft_length), by default 2 (N - 1)
    """
    real, imaginary = _complex_pair("irfft", x)
    N = 2 * (real.shape[-1] - 1) if fft_length is None else fft_length
    half = N // 2 + 1
    real, imaginary = (F.pad(part, [0, half - part.shape[-1]]) for part in (real, imaginary))
    mirrored = slice(1, N - half + 1)  # the other half is the reversed conjugate
    # The first coefficient, and for even lengths the middle one, are real: their imaginary parts are ignored.
    weight = tl.ones(half, dtype=real.dtype, device=real.device)
    weight[0] = 0.0
    if N % 2 == 0:
        weight[-1] = 0.0
    imaginary = imaginary * weight
    full = (
        tl.cat([real, real[..., mirrored].flip(-1)], -1),
        tl.cat([imaginary, -imaginary[..., mirrored].flip(-1)], -1),
    )
    return _fft_axis(full, -1, is_inverse=True)[0]


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> Complex:
    """Return the short-time Fourier transform of a signal.

    Args:
        sequence_length, sequence_stride: the length of a window, and the hop to the next one.
        window: "hann", "hamming", a tensor of sequence_length weights, or None.
        center: pad by reflection, so that the first window is centered on the first sample.

    Shapes:  x (..., N) -> a pair of (..., windows, fft_length // 2 + 1)
    """
    x = floats(x)
    weights = _weights("stft", window, sequence_length, fft_length, x)
    if center:
        flat = x.reshape(-1, 1, x.shape[-1])
        flat = F.pad(flat, [fft_length // 2, fft_length // 2], "reflect")
        x = flat.reshape(*x.shape[:-1], -1)
    return rfft(x.unfold(-1, fft_length, sequence_stride) * weights)


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Tensor:
    """Return the inverse of `stft`: the overlapping windows are added and divided by the sum of the squared weights.

    Shapes:  x, a pair of (..., windows, fft_length // 2 + 1) -> (..., length)
    """
    parts = irfft(x, fft_length)
    weights = _weights("istft", window, sequence_length, fft_length, parts)
    total = _overlap_add(parts * weights, sequence_stride)
    sums = _overlap_add(weights.square().expand(parts.shape[-2], fft_length), sequence_stride)
    signal = total / tl.where(sums > 1e-11, sums, tl.ones_like(sums))
    start = fft_length // 2 if center else 0
    end = signal.shape[-1] - start if length is None else start + length
    return signal[..., start:end]


def _weights(function: str, window: Any, length: int, fft_length: int, like: Tensor) -> Tensor:
    """Return the weights of a window, centered in fft_length."""
    if fft_length < length:
        raise ArgumentError(f"{function}: fft_length={fft_length} is less than sequence_length={length}")
    kinds = {"hann": tl.hann_window, "hamming": tl.hamming_window}
    if window is None:
        weights = tl.ones(length, dtype=like.dtype)
    elif isinstance(window, str):
        if window not in kinds:
            raise ArgumentError(f"{function}: window={window!r}", hint="use 'hann', 'hamming', a tensor, or None")
        weights = kinds[window](length, dtype=like.dtype)
    else:
        weights = floats(window).to(like.dtype)
        if tuple(weights.shape) != (length,):
            raise ShapeError(f"{function}: a window of shape {tuple(weights.shape)} for sequence_length={length}")
    before = (fft_length - length) // 2
    return F.pad(weights.to(like.device), [before, fft_length - length - before])


def _overlap_add(parts: Tensor, stride: int) -> Tensor:
    """Add overlapping windows.

    Shapes:  (..., windows, N) -> (..., (windows - 1) · stride + N)
    """
    *batch, count, N = parts.shape
    size = (count - 1) * stride + N
    columns = parts.reshape(-1, count, N).transpose(1, 2)
    return F.fold(columns, (1, size), (1, N), stride=(1, stride)).reshape(*batch, size)


CORE: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (fft, fft2, ifft2, irfft, istft, rfft, stft)
}

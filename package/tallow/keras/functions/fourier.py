"""Fourier transforms. Complex numbers are pairs of tensors, the real and the imaginary parts, as in Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.functions.operands import floats
from tallow.nn import functional as F
from tallow.tensor import Tensor

Complex = tuple[Tensor, Tensor]


class _Transform(tl.autograd.Function):
    """The Fourier transform along the last axis but one, of pairs (real, imaginary) on the last.

    y_k = Σ_n x_n exp(∓2πi k n / N), over N for the inverse. The gradient is the adjoint, which is the other transform
    up to the factor N.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, is_inverse: bool) -> Tensor:
        ctx.is_inverse = is_inverse
        return _transformed(x, is_inverse)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        N = gradient.shape[-2]
        factor = 1 / N if ctx.is_inverse else N
        return _transformed(gradient, not ctx.is_inverse) * factor, None


def _transformed(x: Tensor, is_inverse: bool) -> Tensor:
    """Through NumPy, whatever the device: transforms are no bottleneck of the models that use them."""
    array = x.detach().cpu().numpy()
    result = (np.fft.ifft if is_inverse else np.fft.fft)(array[..., 0] + 1j * array[..., 1], axis=-1)
    return tl.tensor(np.stack([result.real, result.imag], -1), dtype=x.dtype, device=x.device)


def _along(x: Complex, axis: int, is_inverse: bool) -> Complex:
    pair = tl.stack(x, -1).movedim(axis if axis >= 0 else axis - 1, -2)
    y = _Transform.apply(pair, is_inverse).movedim(-2, axis if axis >= 0 else axis - 1)
    return y[..., 0], y[..., 1]


def _pair(function: str, x: Any) -> Complex:
    if not isinstance(x, list | tuple) or len(x) != 2:
        raise ArgumentError(f"{function}: expected the real and the imaginary part, a pair of tensors")
    real, imaginary = floats(x[0]), floats(x[1])
    if real.shape != imaginary.shape:
        raise ShapeError(f"{function}: the parts have shapes {tuple(real.shape)} and {tuple(imaginary.shape)}")
    return real, imaginary


def fft(x: Any) -> Complex:
    """Along the last axis.  Shapes:  x, a pair of (..., N) -> the same"""
    return _along(_pair("fft", x), -1, is_inverse=False)


def fft2(x: Any) -> Complex:
    """Along the last two axes."""
    return _along(_along(_pair("fft2", x), -1, is_inverse=False), -2, is_inverse=False)


def ifft2(x: Any) -> Complex:
    return _along(_along(_pair("ifft2", x), -1, is_inverse=True), -2, is_inverse=True)


def rfft(x: Any, fft_length: int | None = None) -> Complex:
    """Of real numbers, filled up with zeros or cut off to a length.

    Shapes:  x (..., N) -> a pair of (..., fft_length // 2 + 1)
    """
    x = floats(x)
    N = x.shape[-1] if fft_length is None else fft_length
    x = F.pad(x, [0, N - x.shape[-1]])
    real, imaginary = _along((x, tl.zeros_like(x)), -1, is_inverse=False)
    return real[..., : N // 2 + 1], imaginary[..., : N // 2 + 1]


def irfft(x: Any, fft_length: int | None = None) -> Tensor:
    """The real numbers of which x is the `rfft`.

    Shapes:  x, a pair of (..., N) -> (..., fft_length), by default 2 (N - 1)
    """
    real, imaginary = _pair("irfft", x)
    N = 2 * (real.shape[-1] - 1) if fft_length is None else fft_length
    half = N // 2 + 1
    real, imaginary = (F.pad(part, [0, half - part.shape[-1]]) for part in (real, imaginary))
    mirrored = slice(1, N - half + 1)  # the other half is the conjugate, turned around
    # The first, and of an even length the middle one, are real: their imaginary part has no effect.
    weight = tl.ones(half, dtype=real.dtype, device=real.device)
    weight[0] = 0.0
    if N % 2 == 0:
        weight[-1] = 0.0
    imaginary = imaginary * weight
    whole = (
        tl.cat([real, real[..., mirrored].flip(-1)], -1),
        tl.cat([imaginary, -imaginary[..., mirrored].flip(-1)], -1),
    )
    return _along(whole, -1, is_inverse=True)[0]


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> Complex:
    """The transforms of windows of a signal.

    Args:
        sequence_length, sequence_stride: of a window, and from one to the next.
        window: "hann", "hamming", a tensor of sequence_length weights, or None.
        center: reflect the ends, so that the first window is around the first sample.

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
    """The signal of which x is the `stft`: windows in their places, divided by the sum of the squared weights.

    Shapes:  x, a pair of (..., windows, fft_length // 2 + 1) -> (..., length)
    """
    parts = irfft(x, fft_length)
    weights = _weights("istft", window, sequence_length, fft_length, parts)
    total = _overlapped(parts * weights, sequence_stride)
    sums = _overlapped(weights.square().expand(parts.shape[-2], fft_length), sequence_stride)
    signal = total / tl.where(sums > 1e-11, sums, tl.ones_like(sums))
    start = fft_length // 2 if center else 0
    end = signal.shape[-1] - start if length is None else start + length
    return signal[..., start:end]


def _weights(function: str, window: Any, length: int, fft_length: int, like: Tensor) -> Tensor:
    """The weights of a window, in the middle of fft_length."""
    if fft_length < length:
        raise ArgumentError(f"{function}: fft_length={fft_length} is less than sequence_length={length}")
    kinds = {"hann": tl.hann_window, "hamming": tl.hamming_window}
    if window is None:
        weights = tl.ones(length, dtype=like.dtype)
    elif isinstance(window, str):
        if window not in kinds:
            raise ArgumentError(f"{function}: window={window!r}", mend="use 'hann', 'hamming', a tensor, or None")
        weights = kinds[window](length, dtype=like.dtype)
    else:
        weights = floats(window).to(like.dtype)
        if tuple(weights.shape) != (length,):
            raise ShapeError(f"{function}: a window of shape {tuple(weights.shape)} for sequence_length={length}")
    before = (fft_length - length) // 2
    return F.pad(weights.to(like.device), [before, fft_length - length - before])


def _overlapped(parts: Tensor, stride: int) -> Tensor:
    """The sum of windows in their places.  Shapes:  (..., windows, N) -> (..., (windows - 1) · stride + N)"""
    *batch, count, N = parts.shape
    size = (count - 1) * stride + N
    columns = parts.reshape(-1, count, N).transpose(1, 2)
    return F.fold(columns, (1, size), (1, N), stride=(1, stride)).reshape(*batch, size)


CORE: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (fft, fft2, ifft2, irfft, istft, rfft, stft)
}

"""ONNX's signal processing: windows, Fourier transforms, mel filters. Complex numbers have a last dim of 2.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor
from tallow.errors import ShapeError
from tallow.onnx.operators.bounds import check_made
from tallow.onnx.operators.element_types import dtype_of
from tallow.onnx.operators.registry import Ints, ints, operator
from tallow.ops.dims import normalize_dim


def _length(size: Tensor) -> int:
    length = int(size.item())
    check_made("a window", (length,))
    return length


@operator("HannWindow", since=17, whole=True, folds=False)
def hann_window(size: Tensor, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    """Return a Hann window."""
    return tl.hann_window(_length(size), bool(periodic)).to(dtype_of(output_datatype))


@operator("HammingWindow", since=17, whole=True, folds=False)
def hamming_window(size: Tensor, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    """Return a Hamming window, with 25 / 46 at its middle."""
    return tl.hamming_window(_length(size), bool(periodic), alpha=25 / 46, beta=21 / 46).to(dtype_of(output_datatype))


@operator("BlackmanWindow", since=17, whole=True, folds=False)
def blackman_window(size: Tensor, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    """Return a Blackman window."""
    return tl.blackman_window(_length(size), bool(periodic)).to(dtype_of(output_datatype))


def _as_complex(x: Tensor) -> Tensor:
    """Return complex numbers.  Raises: ShapeError unless the last dim is 1 or 2"""
    if x.shape[-1] not in (1, 2):
        raise ShapeError(f"the last dim of {tuple(x.shape)} holds complex numbers", hint="1 is real, 2 is complex")
    return x[..., 0] if x.shape[-1] == 1 else tl.view_as_complex(x.contiguous())


@operator("DFT", since=20, whole=True, folds=False)
def dft(
    x: Tensor, dft_length: Ints | None = None, axis: Ints | None = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    """Fourier transform along `axis`; `onesided` leaves out what follows from symmetry, or takes it in.

    Shapes:  (..., N, ..., 1 or 2) -> (..., length, ..., 2), of an inverse `onesided` transform (..., 1)
    """
    along = ints(axis)[0] if axis is not None else -2
    along = normalize_dim(along, x.dim(), "DFT")
    length = ints(dft_length)[0] if dft_length is not None else None
    if length is not None:
        check_made("DFT", (*x.shape[:along], length, *x.shape[along + 1 :]), x)
    values = _as_complex(x)
    if onesided and inverse:
        return tl.fft.irfft(values, length, along).unsqueeze(-1)
    if onesided:
        return tl.view_as_real(tl.fft.rfft(values.real if values.is_complex() else values, length, along))
    return tl.view_as_real((tl.fft.ifft if inverse else tl.fft.fft)(values, length, along))


@operator("DFT", since=17, until=19, whole=True, folds=False)
def dft_along(
    x: Tensor, dft_length: Ints | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    """Fourier transform along `axis`; see `dft`."""
    return dft(x, dft_length, (axis,), inverse=inverse, onesided=onesided)


@operator("STFT", since=17, whole=True, folds=False)
def stft(
    signal: Tensor,
    frame_step: Ints,
    window: Tensor | None = None,
    frame_length: Ints | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """Fourier transforms of frames of a signal.

    Shapes:  signal (B, N, 1 or 2) -> (B, frames, frequencies, 2)
    """
    length = ints(frame_length)[0] if frame_length is not None else window.shape[0] if window is not None else 0
    if length <= 0:
        raise ShapeError("STFT: the length of frames is not known", hint="pass frame_length or window")
    step = ints(frame_step)[0]
    check_made("STFT", (len(signal), (signal.shape[1] - length) // step + 1 if step > 0 else 0, length), signal)
    frames = _as_complex(signal).unfold(1, length, step)
    if window is not None:
        frames = frames * window
    spectra = tl.fft.rfft(frames) if onesided and not frames.is_complex() else tl.fft.fft(frames)
    return tl.view_as_real(spectra[..., : length // 2 + 1] if onesided else spectra)


@operator("MelWeightMatrix", since=17, whole=True, folds=False)
def mel_weight_matrix(
    num_mel_bins: Tensor,
    dft_length: Tensor,
    sample_rate: Tensor,
    lower_edge_hertz: Tensor,
    upper_edge_hertz: Tensor,
    *,
    output_datatype: int = 1,
) -> Tensor:
    """Return triangles over the frequencies of a transform, which are evenly spaced in mel.

    Shapes:  -> (dft_length // 2 + 1, num_mel_bins)
    """
    bins, length, rate = (int(each.item()) for each in (num_mel_bins, dft_length, sample_rate))
    check_made("MelWeightMatrix", (length // 2 + 1, bins))
    low, high = (2595 * np.log10(1 + float(each.item()) / 700) for each in (lower_edge_hertz, upper_edge_hertz))
    mels = low + np.arange(bins + 2) * (high - low) / (bins + 2)
    edges = np.floor((length + 1) * 700 * (10 ** (mels / 2595) - 1) / rate).astype(np.int64)
    weights: Any = np.zeros((length // 2 + 1, bins))
    for i, (left, centre, right) in enumerate(zip(edges[:-2], edges[1:-1], edges[2:], strict=True)):
        if left == centre:
            weights[centre, i] = 1
        else:
            weights[left : centre + 1, i] = np.arange(centre - left + 1) / (centre - left)
        if centre != right:
            weights[centre:right, i] = (right - np.arange(centre, right)) / (right - centre)
    return tl.tensor(weights).to(dtype_of(output_datatype))

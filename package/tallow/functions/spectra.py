"""Short-time Fourier transforms: spectra of the frames of a signal, and back.

Letters: B batch, L samples, N points of a frame (`n_fft`), F coefficients (N // 2 + 1 if one-sided, else N), T frames
"""

from __future__ import annotations

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, DtypeError, LinAlgError, ShapeError, UnsupportedError, warn
from tallow.functions.inspection import result_type
from tallow.ops import padding
from tallow.ops.complex_numbers import view_as_real
from tallow.ops.fourier import fft_complex, fft_to_real, spectra_of_frames

LEAST_ENVELOPE = 1e-11  # below it a sample is in no frame
NO_WINDOW = "A window was not provided. A rectangular window will be applied, which is known to cause spectral leakage."


def _lengths(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    """Return the distance of frames and the length of the window, by default N // 4 and N."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop <= 0:
        raise ShapeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise ShapeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={length}")
    return hop, length


def _window(name: str, window: Tensor | None, length: int, n_fft: int, input: Tensor) -> Tensor:
    """Return the window with zeros on both sides, up to N points."""
    if window is None:
        warn(NO_WINDOW)
        window = zeros(length, dtype=input.dtype.to_real(), device=input.device) + 1
    if window.ndim != 1 or window.shape[0] != length:
        raise ShapeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, "
            f"but got window with size {list(window.shape)}"
        )
    left = (n_fft - length) // 2
    return apply(padding.pad, window, (left, n_fft - length - left)) if length < n_fft else window


@public("tl Tensor")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Compute the spectra of the frames of a signal, each multiplied by the window.

    Args:
        hop_length: samples between the starts of frames; N // 4 by default.
        win_length: the size of the window, which is filled up with zeros on both sides; N by default.
        center: put frame t around sample t · hop_length, for which N // 2 samples are added at both ends.
        normalized: divide by √N.
        onesided: return N // 2 + 1 coefficients; by default where the signal and the window are real.
        return_complex: False returns real numbers with a last dim of size 2.

    Shapes:  (L) or (B, L) -> (F, T) or (B, F, T)
    Raises:  ShapeError, DtypeError, ArgumentError
    """
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise ArgumentError("stft requires the return_complex parameter be given for real inputs", hint="pass True")
        return_complex = True
    if align_to_window:
        raise UnsupportedError("stft: align_to_window is not supported")
    if input.dtype.category < 2:
        raise DtypeError(f"stft: expected a tensor of floating point or complex values, got {input.dtype}")
    if input.ndim not in (1, 2):
        raise ShapeError(f"stft: expected a 1D or 2D tensor, got shape {tuple(input.shape)}")
    if onesided and is_complex:
        raise ArgumentError("Cannot have onesided output if window or input is complex")
    hop, length = _lengths("stft", n_fft, hop_length, win_length)
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = apply(padding.pad, x.unsqueeze(1), (n_fft // 2, n_fft // 2), pad_mode).squeeze(1)
    if not 0 < n_fft <= x.shape[-1]:
        raise ShapeError(f"stft: expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    hop = min(hop, x.shape[-1])  # a longer one leads to one frame too, but its gradient to memory as long
    weights = _window("stft", window, length, n_fft, input)
    norm = "ortho" if normalized else "backward"
    if not is_complex and onesided in (None, True):
        common = result_type(x, weights)  # of halves with float32, where no half is left
        spectra = apply(spectra_of_frames, x.to(common), weights.to(common), hop, norm)  # (B, T, F)
    else:
        spectra = apply(fft_complex, x.unfold(-1, n_fft, hop) * weights, (2,), norm, False)
    spectra = spectra.transpose(1, 2)
    spectra = spectra if input.ndim == 2 else spectra.squeeze(0)
    return spectra if return_complex else apply(view_as_real, spectra)


@public("tl Tensor")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Compute the signal of which `stft` returns these spectra, or the nearest one by least squares.

    Args:
        length: of the signal; by default that of the frames, without what `center` added.
        return_complex: return complex numbers, from spectra that are not one-sided.

    Shapes:  (F, T) or (B, F, T) -> (L) or (B, L)
    Raises:  ShapeError, DtypeError, ArgumentError; LinAlgError if a sample is in no frame
    Source:  Griffin & Lim 1984, "Signal estimation from modified short-time Fourier transform", eq. 6
    """
    if not input.is_complex():
        raise DtypeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True"
        )
    if input.ndim not in (2, 3) or not input.numel():
        raise ShapeError(f"istft: expected a tensor with 2 or 3 dimensions and elements, got {tuple(input.shape)}")
    is_complex = window is not None and window.is_complex()
    if onesided and (return_complex or is_complex):
        raise ArgumentError("Cannot have onesided output if window or input is complex")
    x = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)  # (B, T, F)
    if onesided is None:
        onesided = not (return_complex or is_complex) and x.shape[-1] != n_fft
    if x.shape[-1] != (n_fft // 2 + 1 if onesided else n_fft):
        raise ShapeError(f"istft: expected the frequency dimension to fit n_fft={n_fft}, but got {x.shape[-1]}")
    hop, win = _lengths("istft", n_fft, hop_length, win_length)
    if hop > win:
        raise ShapeError(f"istft: expected 0 < hop_length <= win_length, but got hop_length={hop}")
    norm = "ortho" if normalized else "backward"
    if return_complex:
        frames = apply(fft_complex, x, (2,), norm, True)
    else:
        frames = apply(fft_to_real, x[..., : n_fft // 2 + 1], n_fft, (2,), norm)
    weights = _window("istft", window, win, n_fft, input)
    end = n_fft + hop * (x.shape[1] - 1)
    y = _overlapped(frames * weights, end, hop)
    envelope = _overlapped((weights * weights).expand(1, x.shape[1], n_fft), end, hop)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else end - start
    y, envelope = y[:, start:stop], envelope[:, start:stop]
    least = envelope.detach().abs().min().item() if envelope.numel() else 1.0
    if least <= LEAST_ENVELOPE:
        raise LinAlgError(
            f"istft: window overlap add min: {least:g}", hint="use a shorter hop_length, or another window"
        )
    y = y / envelope
    if length is not None and y.shape[-1] < length:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail."
        )
        y = apply(padding.pad, y, (0, length - y.shape[-1]))
    return y if input.ndim == 3 else y.squeeze(0)


def _overlapped(frames: Tensor, end: int, hop: int) -> Tensor:
    """Return the sums of frames that begin `hop` samples after each other.

    Shapes:  (B, T, N) -> (B, end)
    """
    batch, count, n = frames.shape
    parts = -(-n // hop)  # frame t adds its part j, `hop` samples, to part t + j of the signal
    whole = apply(padding.pad, frames, (0, parts * hop - n)) if n % hop else frames
    whole = whole.reshape(batch, count, parts, hop)
    total = apply(padding.pad, whole[:, :, 0], (0, 0, 0, parts - 1))
    for j in range(1, parts):
        total = total + apply(padding.pad, whole[:, :, j], (0, 0, j, parts - 1 - j))
    return total.reshape(batch, -1)[:, :end]

"""Fourier transforms: the inputs and results are real, so that gradients can be checked by finite differences."""

from __future__ import annotations

from typing import Any

from cases import case, normal


def whole(m: Any, x: Any) -> Any:
    """Return complex numbers whose parts are in the last dim of `x`."""
    return m.view_as_complex(x.contiguous())


case("fft_of_real", lambda m, x: m.view_as_real(m.fft.rfft(x)), normal(2, 5))
case("fft_of_real", lambda m, x: m.view_as_real(m.fft.rfft(x, 8, 0, "ortho")), normal(6, 2))
case("fft_of_real", lambda m, x: m.view_as_real(m.fft.rfftn(x, norm="forward").conj_physical()), normal(2, 3, 4))
case("fft_to_real", lambda m, x: (m.fft.irfft(whole(m, x)), m.fft.irfft(whole(m, x), 5)), normal(2, 4, 2))
case("fft_to_real", lambda m, x: m.fft.irfft2(whole(m, x), (3, 4), norm="ortho"), normal(2, 3, 3, 2))
case("fft_to_real", lambda m, x: m.fft.hfft(whole(m, x), 7, 0, "ortho"), normal(4, 2, 2))
case("fft_complex", lambda m, x: m.view_as_real(m.fft.fft(whole(m, x), 6)), normal(2, 5, 2))
case("fft_complex", lambda m, x: m.view_as_real(m.fft.ifft(whole(m, x), 3, norm="forward")), normal(2, 5, 2))
case("fft_complex", lambda m, x: m.view_as_real(m.fft.ifftn(m.fft.fftshift(x) + 0j, dim=(0, 2))), normal(2, 3, 4))
case(
    "spectra_of_frames",
    lambda m, x, w: m.view_as_real(m.stft(x, 4, 3, window=w, return_complex=True)),
    normal(2, 11),
    normal(4),
)
case(
    "spectra_of_frames",
    lambda m, x, w: m.view_as_real(m.stft(x, 5, 2, 3, w, False, normalized=True, return_complex=True)),
    normal(9),
    normal(3),
)

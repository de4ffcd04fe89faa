"""Layers that compute spectrograms of audio."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import initializers
from tallow.keras.config import epsilon
from tallow.keras.functions.convolution import conv
from tallow.keras.functions.fourier import stft
from tallow.keras.layers.checks import positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.windows import check_padding, is_channels_last, window_count
from tallow.nn import functional as F

MODES = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")
MEL_BREAK_HZ = 700.0
MEL_HIGH_Q = 1127.0


class STFTSpectrogram(Layer):
    """Short-time Fourier transform of audio, computed by convolutions with trainable kernels.

    Args:
        mode: "log" or "magnitude" of the amplitudes, "psd", the power, "real", "imag", "angle", or "stft", the real
            and the imaginary parts.
        frame_length, frame_step: the length of a window in samples, and the hop, by default half a window.
        fft_length: by default the next power of two.
        window, periodic, scaling: as in initializers.STFT.
        padding: "valid" or "same".
        expand_dims: keep the channels in a separate dim.

    Shapes:  x (batch, samples, channels) -> (batch, windows, channels · frequencies), or (batch, windows, frequencies,
             channels) with expand_dims
    """

    def __init__(
        self,
        mode: str = "log",
        frame_length: int = 256,
        frame_step: int | None = None,
        fft_length: int | None = None,
        window: Any = "hann",
        periodic: bool = False,
        scaling: str | None = "density",
        padding: str = "valid",
        expand_dims: bool = False,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if mode not in MODES:
            raise ArgumentError(f"{self.name}: mode={mode!r}", hint=f"use {', '.join(map(repr, MODES))}")
        self.mode = mode
        self.frame_length = positive(self.name, "frame_length", frame_length)
        self.step = positive(self.name, "frame_step", frame_length // 2 if frame_step is None else frame_step)
        length = 2 ** (frame_length - 1).bit_length() if fft_length is None else fft_length
        if length < frame_length or self.step > frame_length:
            raise ArgumentError(
                f"{self.name}: frame_length={frame_length} must be at most fft_length={length}, and frame_step="
                f"{self.step} at most frame_length"
            )
        self.frequencies = length // 2 + 1
        self.window, self.scaling, self.periodic = window, scaling, periodic
        self.padding = check_padding(self.name, padding)
        self.expand_dims = expand_dims
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(ndim=3)

    def build(self, input_shape: Shape) -> None:
        for side, other in (("real", "imag"), ("imag", "real")):
            if self.mode != other:
                initializer = initializers.STFT(side, self.window, self.scaling, self.periodic)
                shape = (self.frame_length, 1, self.frequencies)
                setattr(self, f"{side}_kernel", self.add_weight(shape, initializer, name=f"{side}_kernel"))

    def call(self, x: Tensor) -> Tensor:
        x = x.transpose(1, 2) if self.channels_last else x
        parts = [self._transform(x, side) for side in ("real", "imag") if self.mode in (side, *MODES[:3], *MODES[5:])]
        return self._arrange(self._combine(parts))

    def _transform(self, x: Tensor, side: str) -> Tensor:
        """Convolve audio with the real or the imaginary kernel.

        Shapes:  x (batch, channels, samples) -> (batch, channels, frequencies, windows)
        """
        batch, channels, samples = x.shape
        kernel = getattr(self, f"{side}_kernel")
        y = conv(x.reshape(-1, samples, 1), kernel, self.step, self.padding, "channels_last")
        return y.transpose(1, 2).reshape(batch, channels, self.frequencies, -1)

    def _combine(self, parts: list[Tensor]) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        real, imaginary = parts
        if self.mode == "angle":
            return tl.atan2(imaginary, real)
        if self.mode == "stft":
            return tl.cat(parts, 2)
        power = real.square() + imaginary.square()
        if self.mode == "psd":  # frequencies with a negative counterpart count twice
            return power + F.pad(power[:, :, 1:-1], [0, 0, 1, 1])
        magnitude = power.clamp(min=epsilon()).sqrt()
        return magnitude if self.mode == "magnitude" else magnitude.clamp(min=epsilon()).log()

    def _arrange(self, y: Tensor) -> Tensor:
        if self.expand_dims:
            return y.permute(0, 3, 2, 1) if self.channels_last else y.transpose(2, 3)
        y = y.reshape(len(y), -1, y.shape[-1])
        return y.transpose(1, 2) if self.channels_last else y

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *rest = input_shape
        samples, channels = rest if self.channels_last else reversed(rest)
        windows = window_count(self.name, samples, self.frame_length, self.step, self.padding)
        frequencies = self.frequencies * (2 if self.mode == "stft" else 1)
        if self.expand_dims:
            return (
                (batch, windows, frequencies, channels)
                if self.channels_last
                else (batch, channels, windows, frequencies)
            )
        width = None if channels is None else channels * frequencies
        return (batch, windows, width) if self.channels_last else (batch, width, windows)


class MelSpectrogram(Layer):
    """Mel spectrogram of audio.

    Args:    as keras.layers.MelSpectrogram

    Shapes:  x (batch, samples) or (samples) -> (batch, num_mel_bins, windows) or (num_mel_bins, windows)
    Units:   sampling_rate, min_freq and max_freq in hertz; with power_to_db the result in decibels
    """

    def __init__(
        self,
        fft_length: int = 2048,
        sequence_stride: int = 512,
        sequence_length: int | None = None,
        window: Any = "hann",
        sampling_rate: int = 16000,
        num_mel_bins: int = 128,
        min_freq: float = 20.0,
        max_freq: float | None = None,
        power_to_db: bool = True,
        top_db: float = 80.0,
        mag_exp: float = 2.0,
        min_power: float = 1e-10,
        ref_power: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fft_length = positive(self.name, "fft_length", fft_length)
        self.sequence_stride = positive(self.name, "sequence_stride", sequence_stride)
        self.sequence_length = fft_length if sequence_length is None else sequence_length
        self.window = window
        self.num_mel_bins = positive(self.name, "num_mel_bins", num_mel_bins)
        high = sampling_rate / 2 if max_freq is None else max_freq
        self.bounds_hz = (sampling_rate, min_freq, high)
        self.power_to_db, self.top_db, self.mag_exp = power_to_db, top_db, mag_exp
        self.min_power, self.ref_power = min_power, ref_power
        self.input_spec = InputSpec(min_ndim=1, max_ndim=2)

    def call(self, x: Tensor) -> Tensor:
        real, imaginary = stft(x, self.sequence_length, self.sequence_stride, self.fft_length, self.window)
        spectrum = (real.square() + imaginary.square()).sqrt() ** self.mag_exp
        mel = spectrum @ self._weights(spectrum.shape[-1]).to(spectrum.dtype).to(spectrum.device)
        if self.power_to_db:
            reference = tl.tensor(max(abs(self.ref_power), self.min_power), dtype=mel.dtype).log10()
            mel = 10 * (mel.clamp(min=self.min_power).log10() - reference)
            mel = tl.maximum(mel, mel.max() - self.top_db)
        return mel.transpose(-1, -2)

    def _weights(self, frequencies: int) -> Tensor:
        """Return the triangular mel filters, (frequencies, num_mel_bins)."""
        sampling_rate, low, high = self.bounds_hz
        mels = _mel(tl.linspace(0.0, sampling_rate / 2, frequencies, dtype=tl.float64))[1:, None]
        ends = _mel(tl.tensor([low, high], dtype=tl.float64)).tolist()
        edges = tl.linspace(ends[0], ends[1], self.num_mel_bins + 2, dtype=tl.float64)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        rising, falling = (mels - lower) / (center - lower), (upper - mels) / (upper - center)
        return F.pad(tl.minimum(rising, falling).clamp(min=0.0), [0, 0, 1, 0])

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        samples = input_shape[-1]
        windows = None if samples is None else 1 + samples // self.sequence_stride
        return (*input_shape[:-1], self.num_mel_bins, windows)


def _mel(frequencies_hz: Tensor) -> Tensor:
    return MEL_HIGH_Q * (1 + frequencies_hz / MEL_BREAK_HZ).log()

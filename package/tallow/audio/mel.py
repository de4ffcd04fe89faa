"""Log-mel spectrograms for Whisper: the power in each mel band, 100 times a second.

Letters: M mel bins, T frames, N samples.

Source:  Radford et al. 2022, arXiv:2212.04356, section 2.2; the mel scale: Slaney 1998, "Auditory Toolbox", Interval
         Research report 1998-010
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tallow.audio.sound import SAMPLE_RATE_HZ
from tallow.errors import ArgumentError, AudioError

N_FFT = 400
HOP = 160
FRAMES_PER_SECOND = SAMPLE_RATE_HZ // HOP
WINDOW_FRAMES = 3000  # 30 seconds, the length of Whisper's input
SILENCE = -10.0  # log10 of the minimum power
RANGE = 8.0  # dynamic range in log10; lower values are raised to the maximum minus this

LINEAR_HZ = 1000.0  # mels are linear up to here, and logarithmic above
HZ_PER_MEL = 200 / 3
LOG_STEP = np.log(6.4) / 27

Floats = npt.NDArray[np.float32]


@lru_cache
def mel_filters(n_mels: int, n_fft: int = N_FFT, sample_rate_hz: int = SAMPLE_RATE_HZ) -> Floats:
    """Return triangular filters over FFT frequencies, evenly spaced in mels, each with an area of 2 Hz.

    Shapes:  (M, n_fft // 2 + 1)
    Raises:  ArgumentError if a triangle is so narrow that it contains no frequency
    """
    frequencies = np.fft.rfftfreq(n_fft, 1 / sample_rate_hz)
    corners = _mel_to_hz(np.linspace(0, _hz_to_mel(sample_rate_hz / 2), n_mels + 2))
    lower, centre, upper = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising, falling = (frequencies - lower) / (centre - lower), (upper - frequencies) / (upper - centre)
    filters = np.maximum(0, np.minimum(rising, falling)) * (2 / (upper - lower))
    if not filters.any(axis=1).all():
        raise ArgumentError(
            f"mel_filters: {n_mels} mel bins are too many for n_fft={n_fft}", hint="pass a smaller n_mels"
        )
    narrowed: Floats = filters.astype(np.float32)
    narrowed.flags.writeable = False  # shared by the cache
    return narrowed


def _hz_to_mel(hz: float) -> float:
    return hz / HZ_PER_MEL if hz < LINEAR_HZ else LINEAR_HZ / HZ_PER_MEL + np.log(hz / LINEAR_HZ) / LOG_STEP


def _mel_to_hz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    bend = LINEAR_HZ / HZ_PER_MEL
    return np.where(mels < bend, mels * HZ_PER_MEL, LINEAR_HZ * np.exp(LOG_STEP * np.maximum(mels - bend, 0)))


def log_mel_spectrogram(audio: npt.ArrayLike, n_mels: int = 80, padding: int = 0) -> Floats:
    """Return the log-mel spectrogram of audio at 16 kHz, scaled to about 1 at the loudest, with a range of 2.

    (log10 max(mel, 1e-10), but no less than its maximum - 8, + 4) / 4

    Args:  padding: number of samples of silence to append

    Shapes:  audio (N,) -> (M, (N + padding) // 160), float32
    Raises:  ArgumentError for other shapes, and for fewer than 201 samples, too few for reflection padding
    """
    samples = np.asarray(audio, np.float32)
    if samples.ndim != 1:
        raise ArgumentError(f"log_mel_spectrogram: audio of shape {samples.shape}", hint="pass (N,), one channel")
    if len(samples) + padding <= N_FFT // 2:
        raise ArgumentError(f"log_mel_spectrogram: {len(samples)} samples are too few", hint="pass padding=480000")
    samples = np.pad(np.pad(samples, (0, padding)), N_FFT // 2, mode="reflect")
    raw = _log10_mel(samples, (len(samples) - N_FFT) // HOP, n_mels)
    return _scaled(raw, float(raw.max(initial=SILENCE)))


class MelWindows:
    """The spectrogram of long audio, computed in windows without keeping more samples than a window needs.

    `window(start, count)` equals `log_mel_spectrogram(sound, n_mels, padding=480000)[:, start : start + count]`. The
    sound is read once to find its maximum, and then again as windows are requested.

    Args:
        sound: an iterable of blocks of samples (N,) at 16 kHz that can be iterated repeatedly: a `Sound`, or a list.

    Attributes:
        frames: number of frames of the sound.

    Raises:  AudioError for samples that are NaN or infinite
    """

    def __init__(self, sound: Iterable[Floats], n_mels: int = 80) -> None:
        self.n_mels = n_mels
        self._samples = _Samples(sound)
        self._peak = SILENCE
        start = 0
        while self._samples.length is None or start * HOP < self._samples.length + N_FFT:
            with np.errstate(invalid="ignore"):
                peak = float(self._raw(start, WINDOW_FRAMES).max())
            if not np.isfinite(peak):
                seconds = start // FRAMES_PER_SECOND
                raise AudioError(
                    f"NaN or infinity among the samples after {seconds} s", hint="check how it was written"
                )
            self._peak = max(self._peak, peak)
            start += WINDOW_FRAMES
        self.frames = self._samples.length // HOP

    def window(self, start: int, count: int = WINDOW_FRAMES) -> Floats:
        """Return frames of the sound, or of the silence after it.

        Shapes:  (M, count), float32
        """
        return _scaled(self._raw(start, count), self._peak)

    def _raw(self, start: int, count: int) -> Floats:
        half = N_FFT // 2
        first, last = start * HOP - half, (start + count - 1) * HOP + half
        samples = self._samples.read(max(first, 0), last)
        if first < 0:  # reflected at the first sample; later windows do not reach it
            samples = np.concatenate([self._samples.read(0, -first + 1)[-first:0:-1], samples])
        return _log10_mel(samples, count, self.n_mels)


class _Samples:
    """Random access to the samples of blocks, with zeros after the end. It keeps the last part read; reading an earlier
    position restarts the iteration."""

    def __init__(self, sound: Iterable[Floats]) -> None:
        self._sound = sound
        self.length: int | None = None  # unknown until everything was read once
        self._restart()

    def _restart(self) -> None:
        self._blocks: Iterator[Floats] = iter(self._sound)
        self._buffer = np.zeros(0, np.float32)
        self._start = 0

    def read(self, begin: int, end: int) -> Floats:
        """Return the samples from `begin` to `end`."""
        if begin < self._start:
            self._restart()
        parts = [self._buffer]
        available = self._start + len(self._buffer)
        while available < end and (block := next(self._blocks, None)) is not None:
            available += len(block)
            parts.append(np.asarray(block, np.float32))
            if available <= begin:  # skipped
                parts, self._start = [], available
        if available < end:
            self.length = available
        buffer = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.zeros(0, np.float32)
        drop = min(max(begin - self._start, 0), len(buffer))
        self._buffer, self._start = buffer[drop:], self._start + drop
        samples = self._buffer[: end - begin] if self._start == begin else self._buffer[:0]
        return samples if len(samples) == end - begin else np.pad(samples, (0, end - begin - len(samples)))


def _log10_mel(samples: Floats, frames: int, n_mels: int) -> Floats:
    """Return log10 of the mel power of frames of `samples`, 160 samples apart.  Shapes: -> (M, T)"""
    filters = mel_filters(n_mels)
    mel = np.empty((n_mels, frames), np.float32)
    views = np.lib.stride_tricks.sliding_window_view(samples, N_FFT)[::HOP]
    for start in range(0, frames, 500):  # chunks that fit the CPU cache
        spectrum = np.fft.rfft(views[start : min(start + 500, frames)] * _hann())
        mel[:, start : start + 500] = filters @ (spectrum.real**2 + spectrum.imag**2).T
    return np.log10(np.maximum(mel, np.float32(10**SILENCE), out=mel), out=mel)


def _scaled(raw: Floats, peak: float) -> Floats:
    return (np.maximum(raw, np.float32(peak - RANGE)) + np.float32(4)) / np.float32(4)


@lru_cache
def _hann() -> Floats:
    """Return the periodic Hann window."""
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)).astype(np.float32)

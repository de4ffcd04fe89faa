"""Simulate rooms, noise and microphones, because synthetic voices are too clean.

Letters: N samples, M mel bins, T frames.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallow.audio.mel import RANGE, log_mel_spectrogram
from tallow.audio.sound import SAMPLE_RATE_HZ

Floats = npt.NDArray[np.float32]
Rng = np.random.Generator

NOISE_SHARE, ROOM_SHARE, CHANNEL_SHARE = 0.7, 0.3, 0.5


def noise(rng: Rng, count: int) -> Floats:
    """Return noise of mean power 1: white to pink to red, sometimes with mains hum and its overtones."""
    size = 1 << (count - 1).bit_length()
    spectrum = np.fft.rfft(rng.standard_normal(size, np.float32))
    spectrum *= np.maximum(np.arange(len(spectrum), dtype=np.float32), 8) ** -np.float32(rng.uniform(0, 1.2))
    samples = _unit(np.fft.irfft(spectrum)[:count])
    if rng.random() < 0.2:
        t = np.arange(count, dtype=np.float32) / SAMPLE_RATE_HZ
        hz = rng.choice((50, 60))
        overtones = sum(np.sin(2 * np.pi * hz * k * t + rng.uniform(0, 6)) / k for k in (1, 2, 3, 5))
        samples = _unit(samples + rng.uniform(0.3, 2) * overtones)
    return samples


def in_room(samples: Floats, rng: Rng) -> Floats:
    """Add echoes: convolve with decaying noise."""
    decay_s = rng.uniform(0.03, 0.12)
    count = round(4 * decay_s * SAMPLE_RATE_HZ)
    t = np.arange(count, dtype=np.float32) / SAMPLE_RATE_HZ
    echoes = rng.standard_normal(count, np.float32) * np.exp(-t / np.float32(decay_s))
    echoes *= np.float32(rng.uniform(0.2, 0.8)) / np.linalg.norm(echoes)
    echoes[0] = 1
    size = 1 << (len(samples) + count - 1).bit_length()
    heard = np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(echoes, size))
    return heard[: len(samples)].astype(np.float32)


def spectrogram(samples: Floats, rng: Rng, n_mels: int) -> Floats:
    """Return the `log_mel_spectrogram` of the sound with a random room, noise and microphone.

    Shapes:  (N,) -> (M, N // 160)
    """
    if rng.random() < ROOM_SHARE:
        samples = in_room(samples, rng)
    power = float(np.mean(samples**2))
    if power and rng.random() < NOISE_SHARE:
        level_db = rng.uniform(-40, -5)
        samples = samples + noise(rng, len(samples)) * np.float32(np.sqrt(power) * 10 ** (level_db / 20))
    mel = log_mel_spectrogram(samples, n_mels)
    if rng.random() < CHANNEL_SHARE:
        mel = mel + _response(rng, n_mels)[:, None]
    # Other parts of the sound may be louder, which raises the threshold of silence.
    louder = rng.uniform(0, 1) if rng.random() < 0.3 else 0.0
    return np.maximum(mel, np.float32(mel.max() + (louder - RANGE) / 4), dtype=np.float32)


def _response(rng: Rng, n_mels: int) -> Floats:
    """Return the gain of a microphone in each band: a slope plus a wave, up to 10 dB."""
    x = np.linspace(-1, 1, n_mels, dtype=np.float32)
    curve = rng.uniform(-0.15, 0.15) * x + rng.uniform(0, 0.1) * np.sin(rng.uniform(1, 6) * x + rng.uniform(0, 6))
    return curve.astype(np.float32)


def _unit(samples: npt.NDArray[np.floating]) -> Floats:
    return (samples / np.sqrt(np.mean(samples**2) + 1e-12)).astype(np.float32)

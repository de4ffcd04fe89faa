"""Sound against OpenAI's whisper, and files of many formats by libsndfile and SoX's resampler."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from tallow.audio import MelWindows, Sound, log_mel_spectrogram, mel_filters
from tallow.errors import AudioError

soundfile = pytest.importorskip("soundfile")


def speech_like(seconds: float, rate: int = 16000) -> np.ndarray:
    """A voice's harmonics, rising and falling, in some noise: without it, Whisper's own float32 is off by more than
    1e-5 where a band is nearly silent."""
    t = np.arange(int(seconds * rate)) / rate
    pitch = 2 * np.pi * np.cumsum(140 + 30 * np.sin(2 * np.pi * 0.7 * t)) / rate
    voice = sum(np.sin(k * pitch) / k for k in range(1, 20)) * (0.5 + 0.5 * np.sin(2 * np.pi * 2.3 * t))
    return (0.2 * voice + 0.1 * np.random.default_rng(0).standard_normal(len(t))).astype(np.float32)


@pytest.mark.parametrize("n_mels", [80, 128])
def test_filters(n_mels: int, data_dir: Path) -> None:
    with np.load(data_dir / "mel_filters.npz") as file:
        np.testing.assert_allclose(mel_filters(n_mels), file[f"mel_{n_mels}"], atol=1e-8)


@pytest.mark.parametrize("n_mels", [80, 128])
@pytest.mark.parametrize("padding", [0, 480_000])
def test_spectrogram(n_mels: int, padding: int) -> None:
    audio = pytest.importorskip("whisper.audio")
    samples = speech_like(7.3)
    expected = audio.log_mel_spectrogram(samples, n_mels, padding=padding).numpy()
    np.testing.assert_allclose(log_mel_spectrogram(samples, n_mels, padding), expected, atol=1e-5)
    if padding:
        np.testing.assert_allclose(MelWindows([samples], n_mels).window(0), expected[:, :3000], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("WAV", "ULAW"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III"), ("AIFF", "PCM_16")],
)
def test_formats_rates_and_channels(kind: str, subtype: str) -> None:
    samples = speech_like(1.0, 48000)
    buffer = io.BytesIO()
    soundfile.write(buffer, np.stack([samples, samples], axis=1), 48000, format=kind, subtype=subtype)
    if subtype == "ULAW":
        with pytest.raises(AudioError, match="format 7"):
            Sound(buffer.getvalue()).read()
        return
    read = Sound(buffer.getvalue()).read()
    expected = pytest.importorskip("soxr").resample(samples, 48000, 16000)
    assert abs(len(read) - 16000) < 1200  # mp3 adds some silence
    if kind in ("FLAC", "AIFF"):
        np.testing.assert_allclose(read, expected, atol=1e-4)
    else:
        assert np.std(read) == pytest.approx(np.std(expected), rel=0.1)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 96000])
def test_resampling_keeps_a_tone(rate: int) -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate), rate, format="WAV", subtype="FLOAT")
    read = Sound(buffer.getvalue()).read()
    assert len(read) == pytest.approx(32000, abs=2)
    expected = np.sin(2 * np.pi * 440 * np.arange(len(read)) / 16000)
    np.testing.assert_allclose(read[2000:-2000], expected[2000:-2000], atol=1e-3)


@pytest.mark.parametrize("content", [b"", b"Hello, this is a text.", b"\0\0\0\x18ftypmp42" + bytes(100), b"ID3\4" * 50])
def test_what_is_no_sound(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    path.write_bytes(content)
    with pytest.raises(AudioError, match=r"talk.wav cannot be read as sound.*\n.*ffmpeg"):
        Sound(path).read()

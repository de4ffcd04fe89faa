"""Audio compared with OpenAI's whisper; files of many formats by libsndfile, and SoX's resampler."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tallow.audio import MelWindows, Sound, decoders, log_mel_spectrogram, mel_filters
from tallow.errors import AudioError

soundfile = pytest.importorskip("soundfile")


def speech_like(seconds: float, rate: int = 16000) -> np.ndarray:
    """Return the harmonics of a voice, rising and falling, with noise.

    Without noise, Whisper's own float32 is off by more than 1e-5 where a band is nearly silent.
    """
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
    [
        ("WAV", "ULAW"),
        ("WAV", "ALAW"),
        ("FLAC", "PCM_24"),
        ("OGG", "VORBIS"),
        ("MP3", "MPEG_LAYER_III"),
        ("AIFF", "PCM_16"),
    ],
)
def test_formats_rates_and_channels(kind: str, subtype: str) -> None:
    samples = speech_like(1.0, 48000)
    buffer = io.BytesIO()
    soundfile.write(buffer, np.stack([samples, samples], axis=1), 48000, format=kind, subtype=subtype)
    read = Sound(buffer.getvalue()).read()
    expected = pytest.importorskip("soxr").resample(samples, 48000, 16000)
    assert abs(len(read) - 16000) < 1200  # mp3 adds some silence
    if kind in ("FLAC", "AIFF"):
        np.testing.assert_allclose(read, expected, atol=1e-4)
    else:
        assert np.std(read) == pytest.approx(np.std(expected), rel=0.1)


@pytest.mark.parametrize("subtype", ["ULAW", "ALAW"])
def test_telephone_companding(subtype: str) -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros(256), 16000, format="WAV", subtype=subtype)
    content = buffer.getvalue()[:-256] + bytes(range(256))
    expected, _ = soundfile.read(io.BytesIO(content), dtype="float32")
    np.testing.assert_array_equal(Sound(content).read(), expected)


@pytest.mark.parametrize(
    ("kind", "subtype", "weights"),
    [
        ("FLAC", "PCM_16", [0.2071, 0.2071, 0.2929, 0, 0.1464, 0.1464]),  # left, right, centre, bass, back
        ("OGG", "VORBIS", [0.2071, 0.2929, 0.2071, 0.1464, 0.1464, 0]),  # left, centre, right, back, bass
    ],
)
def test_channel_order_of_formats(kind: str, subtype: str, weights: list[float]) -> None:
    """ffmpeg 5.1 mixes files with these weights; the bass channel is dropped."""
    tone = 0.5 * np.sin(np.arange(4800) * 0.3)
    samples = np.zeros((6 * 4800, 6))
    for channel in range(6):
        samples[4800 * channel : 4800 * (channel + 1), channel] = tone
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, 16000, format=kind, subtype=subtype)
    channels = Sound(buffer.getvalue()).read().reshape(6, 4800)[:, 1200:3600]
    np.testing.assert_allclose(np.std(channels, axis=1) / np.std(tone), weights, atol=0.01)


def m4a(planes: np.ndarray, path: Path, rate: int = 48000) -> Path:
    """Encode planes (channels, N) as AAC in an MP4 file."""
    ffmpeg = decoders._ffmpeg()
    if ffmpeg is None:
        pytest.skip("there is no ffmpeg, nor imageio-ffmpeg")
    reading = ["-f", "f32le", "-ar", str(rate), "-ac", str(len(planes)), "-i", "-"]
    making = ["-c:a", "aac", "-b:a", "256k", str(path)]
    samples = planes.T.astype("<f4").tobytes()
    subprocess.run([ffmpeg, "-v", "error", *reading, *making], input=samples, check=True)
    return path


def test_m4a(tmp_path: Path) -> None:
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(48000) / 48000)
    silence = np.zeros_like(tone)
    left_sound = m4a(np.stack([tone, silence]), tmp_path / "left.m4a")
    for sound in (Sound(left_sound), Sound(left_sound.read_bytes())):
        read = sound.read()
        middle = read[4000:12000]
        assert abs(len(read) - 16000) < 1200  # an encoder's frames have 1024 samples
        assert np.std(middle) == pytest.approx(0.5 * np.std(tone), rel=0.02)
        assert np.abs(np.fft.rfft(middle)).argmax() * 16000 / len(middle) == pytest.approx(440, abs=2)
    centre = m4a(np.stack([silence, silence, tone, silence, silence, silence]), tmp_path / "centre.m4a")
    assert np.std(Sound(centre).read()[4000:12000]) == pytest.approx(0.2929 * np.std(tone), rel=0.05)


def test_m4a_without_its_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = m4a(np.zeros((1, 4096)), tmp_path / "talk.m4a")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(AudioError, match="imageio-ffmpeg"):
        Sound(path).read()


def test_no_file_can_make_ffmpeg_open_another(tmp_path: Path) -> None:
    """ffmpeg would follow playlists."""
    m4a(np.zeros((1, 4096)), tmp_path / "talk.m4a")
    playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\ntalk.m4a\n#EXT-X-ENDLIST\n"
    (tmp_path / "talk.m3u8").write_text(playlist)
    with pytest.raises(AudioError, match="cannot be read as audio"):
        Sound(tmp_path / "talk.m3u8").read()


def test_a_truncated_m4a(tmp_path: Path) -> None:
    path = m4a(np.random.default_rng(0).standard_normal((1, 48000)) / 10, tmp_path / "talk.m4a")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(AudioError, match=r"talk.m4a cannot be read as audio"):
        Sound(path).read()


def test_closing_the_reader_ends_the_decoder(tmp_path: Path) -> None:
    path = m4a(np.zeros((1, 48000 * 60)), tmp_path / "talk.m4a")
    blocks = iter(Sound(path))
    assert len(next(blocks)) > 0
    blocks.close()  # waits for the process: an unread pipe would block it for ever


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 96000])
def test_resampling_keeps_a_tone(rate: int) -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate), rate, format="WAV", subtype="FLOAT")
    read = Sound(buffer.getvalue()).read()
    assert len(read) == pytest.approx(32000, abs=2)
    expected = np.sin(2 * np.pi * 440 * np.arange(len(read)) / 16000)
    np.testing.assert_allclose(read[2000:-2000], expected[2000:-2000], atol=1e-3)


@pytest.mark.parametrize("content", [b"", b"Hello, this is a text.", b"\0\0\0\x18ftypmp42" + bytes(100), b"ID3\4" * 50])
def test_files_without_audio(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    path.write_bytes(content)
    with pytest.raises(AudioError, match=r"talk.wav cannot be read as audio.*\n.*ffmpeg"):
        Sound(path).read()

"""Audio: WAV files of all kinds, bad files, and spectrograms compared with the definition, whole and in windows."""

from __future__ import annotations

import contextlib
import io
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallow.audio import MelWindows, Sound, WavReader, log_mel_spectrogram, mel_filters, write_wav
from tallow.audio.mel import _Samples
from tallow.audio.wav import wav_head
from tallow.errors import ArgumentError, AudioError, MissingPackageError, TallowWarning

RAMP = np.linspace(-1, 0.9, 50, dtype=np.float32)


def wav(data: bytes, kind: int, bits: int, channels: int = 1, rate: int = 16000, *, size: int | None = None) -> bytes:
    """Write a WAV file by its specification, with an odd-sized chunk that readers must skip."""
    head = struct.pack("<HHIIHH", kind, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits)
    chunks = b"LIST" + struct.pack("<I", 3) + b"abc\0" + b"fmt " + struct.pack("<I", 16) + head
    return b"RIFF\0\0\0\0WAVE" + chunks + b"data" + struct.pack("<I", len(data) if size is None else size) + data


def integers(bits: int) -> bytes:
    values = np.clip(np.rint(RAMP.astype(float) * 2 ** (bits - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype(int)
    if bits == 8:
        values += 128
    return b"".join(int(v).to_bytes(bits // 8, "little", signed=bits > 8) for v in values)


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_integers_of_every_width(bits: int) -> None:
    read = Sound(wav(integers(bits), 1, bits)).read()
    np.testing.assert_allclose(read, RAMP, atol=0.6 / 2 ** (bits - 1) + 1e-7)


@pytest.mark.parametrize("bits", [32, 64])
def test_floats(bits: int) -> None:
    read = Sound(wav(RAMP.astype(f"<f{bits // 8}").tobytes(), 3, bits)).read()
    np.testing.assert_array_equal(read, RAMP)


def test_files_of_more_than_4_gb_are_refused() -> None:
    assert wav_head(16000, 0xFFFFFFFF - 36)[4:8] == b"\xff" * 4
    with pytest.raises(ArgumentError, match="too many for a WAV file"):
        wav_head(16000, 0xFFFFFFFF - 35)


def test_round_trip_with_the_standard_library(tmp_path: Path) -> None:
    stereo = np.stack([RAMP, -RAMP * 0.5], axis=1)
    write_wav(tmp_path / "a.wav", stereo, 44100)
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (2, 44100, 2)
        frames = file.readframes(1000)
    np.testing.assert_allclose(np.frombuffer(frames, "<i2").reshape(-1, 2) / 32768, stereo, atol=0.6 / 32768)
    with wave.open(str(tmp_path / "b.wav"), "wb") as file:
        file.setparams((2, 2, 16000, 0, "NONE", ""))
        file.writeframes(frames)
    np.testing.assert_allclose(Sound(tmp_path / "b.wav").read(), stereo.mean(axis=1), atol=1 / 32768)


def test_extensible_format() -> None:
    head = struct.pack("<HHIIHHHHIH", 0xFFFE, 1, 16000, 32000, 2, 16, 22, 16, 4, 1) + bytes(14)
    data = integers(16)
    file = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    np.testing.assert_allclose(Sound(file).read(), RAMP, atol=1e-4)


def extensible(samples: np.ndarray, mask: int) -> bytes:
    """Write 16-bit samples (N, channels), each channel for the speaker of a bit of the mask."""
    channels = samples.shape[1]
    head = struct.pack("<HHIIHHHHIH", 0xFFFE, channels, 16000, 0, 2 * channels, 16, 22, 16, mask, 1) + bytes(14)
    data = np.rint(samples * 32768).astype("<i2").tobytes()
    return b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 40) + head + b"data" + struct.pack("<I", len(data)) + data


MIXES = [  # ffmpeg 5.1 with -ac 1: its weight of each channel
    (1, 0, [1.0]),
    (2, 0, [0.5, 0.5]),
    (3, 0x7, [0.2929, 0.2929, 0.4142]),
    (3, 0, [0.5, 0.5, 0.0]),
    (4, 0x33, [0.2929, 0.2929, 0.2071, 0.2071]),
    (4, 0x107, [0.2426, 0.2426, 0.3431, 0.1716]),
    (6, 0x3F, [0.2071, 0.2071, 0.2929, 0.0, 0.1464, 0.1464]),
    (6, 0x60F, [0.2071, 0.2071, 0.2929, 0.0, 0.1464, 0.1464]),
    (6, 0, [0.2071, 0.2071, 0.2929, 0.0, 0.1464, 0.1464]),
    (7, 0x70F, [0.1807, 0.1807, 0.2555, 0.0, 0.1277, 0.1277, 0.1277]),
    (8, 0x63F, [0.1602, 0.1602, 0.2266, 0.0, 0.1133, 0.1133, 0.1133, 0.1133]),
    (8, 0xFF, [0.1464, 0.1464, 0.2071, 0.0, 0.1036, 0.1036, 0.1464, 0.1464]),
    (8, 0x5003F, [0.2071, 0.2071, 0.2929, 0.0, 0.1464, 0.1464, 0.0, 0.0]),  # two overhead speakers
    (2, 0x9, [1.0, 0.0]),
    (9, 0, [1 / 9] * 9),  # ffmpeg refuses it: there is no usual order of nine speakers
]


@pytest.mark.parametrize(("channels", "mask", "weights"), MIXES, ids=[f"{c}-{m:x}" for c, m, _ in MIXES])
def test_channels_are_weighed_as_ffmpeg_does(channels: int, mask: int, weights: list[float]) -> None:
    read = Sound(extensible(np.eye(channels) / 2, mask)).read()
    np.testing.assert_allclose(2 * read, weights, atol=1e-4)


def test_telephone_companding() -> None:
    """G.711, tables 1a to 2b: 14-bit and 13-bit values at the decision boundary of each exponent."""
    codes = bytes([0xFF, 0x7F, 0xF0, 0xEF, 0x80, 0x00])
    np.testing.assert_array_equal(Sound(wav(codes, 7, 8)).read() * 8192, [0, 0, 30, 33, 8031, -8031])
    codes = bytes([0xD5, 0x55, 0xC5, 0xF5, 0xAA, 0x2A])
    np.testing.assert_array_equal(Sound(wav(codes, 6, 8)).read() * 4096, [1, -1, 33, 66, 4032, -4032])


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0x80000000, 0xFFFFFFFF])
def test_a_size_not_known_when_it_was_written(size: int) -> None:
    np.testing.assert_allclose(Sound(wav(integers(16), 1, 16, size=size)).read(), RAMP, atol=1e-4)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (wav(b"", 1, 16)[:20], "truncated within"),
        (wav(b"", 2, 4), "samples of 4 bits in WAV format 2|cannot be read as audio|needs the package soundfile"),
        (wav(b"", 1, 16, channels=0), "0 channels"),
        (wav(b"", 1, 16, rate=0), "at 0 Hz"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "there is no chunk"),
        (b"RIFF\0\0\0\0AVI ", "not a WAV file: it starts with 'RIFF'"),
        (b"RIFF\0\0\0\0WAVEfmt \xff\xff\xff\xff", "has 4294967295 bytes"),
    ],
)
def test_bad_files(file: bytes, message: str) -> None:
    with pytest.raises((AudioError, MissingPackageError), match=message):
        Sound(file).read()


def test_a_file_without_its_end() -> None:
    with pytest.warns(TallowWarning, match="truncated: 7 of 100 bytes"):
        read = Sound(wav(integers(16), 1, 16)[:-7]).read()
    np.testing.assert_allclose(read, RAMP[:46], atol=1e-4)


@pytest.mark.filterwarnings("ignore::tallow.errors.TallowWarning")
@given(st.binary(max_size=80))
def test_any_bytes_load_or_raise(tail: bytes) -> None:
    with contextlib.suppress(AudioError):
        list(WavReader(io.BytesIO(b"RIFF\0\0\0\0WAVE" + tail)).blocks())


def test_blocks_join_to_the_whole() -> None:
    reader = WavReader(io.BytesIO(wav(integers(16), 1, 16)))
    assert [len(block) for block in reader.blocks(20)] == [20, 20, 10]


def test_filters_are_triangles_of_one_area() -> None:
    filters = mel_filters(80)
    assert filters.shape == (80, 201)
    # Slaney's mels: 1000 Hz is mel 15, 8000 Hz is 15 + 27 log(8) / log(6.4).
    top = 15 + 27 * np.log(8) / np.log(6.4)
    corners = np.linspace(0, top, 82)
    hz = np.where(corners < 15, corners * 200 / 3, 1000 * 6.4 ** ((corners - 15) / 27))
    wide = hz[2:] - hz[:-2] > 400  # enough frequencies in the triangle for their sum to equal its area
    np.testing.assert_allclose(filters[wide].sum(axis=1) * 40, 1, rtol=0.02)
    with pytest.raises(ArgumentError, match="too many"):
        mel_filters(400)


def spectrogram(samples: np.ndarray, n_mels: int) -> np.ndarray:
    """Compute a spectrogram by the definition, in float64, frame by frame."""
    padded = np.pad(samples.astype(float), 200, mode="reflect")
    hann = 0.5 * (1 - np.cos(2 * np.pi * np.arange(400) / 400))
    angles = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    frames = [padded[160 * t : 160 * t + 400] * hann for t in range(len(samples) // 160)]
    log = np.log10(np.maximum(mel_filters(n_mels) @ np.abs(angles @ np.array(frames).T) ** 2, 1e-10))
    return (np.maximum(log, log.max() - 8) + 4) / 4


@pytest.mark.parametrize("n_mels", [80, 128])
def test_spectrogram_is_its_definition(n_mels: int) -> None:
    noise = np.random.default_rng(0).standard_normal(3333).astype(np.float32) / 10
    np.testing.assert_allclose(log_mel_spectrogram(noise, n_mels), spectrogram(noise, n_mels), atol=1e-5)


def test_the_range_is_limited() -> None:
    tone = np.sin(np.arange(16000) * 0.5).astype(np.float32)
    spectrum = log_mel_spectrogram(tone, padding=16000)
    assert spectrum.max() - spectrum.min() == pytest.approx(2)
    np.testing.assert_allclose(log_mel_spectrogram(np.zeros(1600)), -1.5, atol=1e-6)


def test_windows_are_parts_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    samples = rng.standard_normal(50_000).astype(np.float32) * np.linspace(0.01, 1, 50_000, dtype=np.float32)
    full = log_mel_spectrogram(samples, padding=480_000)
    windows = MelWindows(np.array_split(samples, 7))
    assert windows.frames == 50_000 // 160
    for start, count in [(0, 100), (1, 3), (100, 200), (90, 60), (250, 3000), (0, 2)]:
        np.testing.assert_allclose(windows.window(start, count), full[:, start : start + count], atol=1e-6)


@pytest.mark.parametrize("length", [0, 1, 159, 200, 480_000])
def test_windows_of_sounds_of_any_length(length: int) -> None:
    samples = np.ones(length, np.float32)
    windows = MelWindows([samples])
    assert windows.frames == length // 160
    full = log_mel_spectrogram(samples, padding=480_000)
    np.testing.assert_allclose(windows.window(0, 300), full[:, :300], atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_samples_that_are_no_numbers(bad: float) -> None:
    samples = np.zeros(800_000, np.float32)
    samples[700_000] = bad
    with pytest.raises(AudioError, match="after 30 s"):
        MelWindows([samples])


def test_memory_is_one_window_and_one_block() -> None:
    samples = _Samples([np.full(100, i, np.float32) for i in range(1000)])
    assert samples.read(50_000, 50_010).tolist() == [500.0] * 10
    assert len(samples._buffer) <= 200
    assert samples.read(50, 150).tolist() == [0.0] * 50 + [1.0] * 50
    assert samples.read(99_990, 100_005).tolist() == [999.0] * 10 + [0.0] * 5
    assert samples.length == 100_000


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="one channel"):
        log_mel_spectrogram(np.zeros((2, 16000)))
    with pytest.raises(ArgumentError, match="too few"):
        log_mel_spectrogram(np.zeros(200))

"""Sounds that say much and hold little are refused, and the work that they ask for is not done."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.long_sounds import FRAME, flac_of_silence
from support.memory_limit import limit_peak_memory

from tallow.audio import Sound, decoders, limits
from tallow.audio.limits import BLOCK
from tallow.errors import AudioError

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("soxr")


def wav(data: bytes, *, rate: int = 16000, channels: int = 1, kind: int = 1, bits: int = 8) -> bytes:
    frame_bytes = channels * bits // 8 & 0xFFFF
    form = struct.pack("<HHIIHH", kind, channels, rate, 0, frame_bytes, bits)
    body = struct.pack("<4sI", b"fmt ", len(form)) + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI4s", b"RIFF", 4 + len(body), b"WAVE") + body


def written(format: str, subtype: str, seconds: int, rate: int = 16000, channels: int = 1) -> bytes:
    """Write silence with libsndfile."""
    file = io.BytesIO()
    soundfile.write(file, np.zeros((seconds * rate, channels)), rate, format=format, subtype=subtype)
    return file.getvalue()


def read_until_error(sound: Sound, match: str) -> list[int]:
    """Return the lengths of the blocks before the error."""
    lengths: list[int] = []
    with pytest.raises(AudioError, match=match):
        lengths.extend(map(len, sound))
    return lengths


@pytest.mark.parametrize("rate", [1, 999, 768_001, 0xFFFFFFFF])
@pytest.mark.parametrize("kind", [1, 2], ids=["by tallow", "by libsndfile"])
def test_a_rate_that_no_sound_has_is_refused_before_it_is_decoded(rate: int, kind: int) -> None:
    if kind == 1:
        file = wav(bytes(500_000), rate=rate)
    else:
        raw = bytearray(written("AU", "PCM_16", 1))
        raw[16:20] = rate.to_bytes(4, "big")
        file = bytes(raw)
    with limit_peak_memory(4 << 20):
        assert read_until_error(Sound(file), "at -?[0-9]+ Hz|cannot be read") == []


@pytest.mark.parametrize(("rate", "wanted"), [(1000, 16000), (768_000, 16000), (8000, 48000)])
def test_blocks_are_smaller_where_resampling_multiplies_them(rate: int, wanted: int) -> None:
    lengths = [len(block) for block in Sound(wav(bytes(3 * BLOCK), rate=rate), sample_rate_hz=wanted)]
    assert sum(lengths) == pytest.approx(3 * BLOCK * wanted / rate, abs=2)
    assert max(lengths) <= 1.2 * BLOCK  # the resampler keeps some


@pytest.mark.parametrize("channels", [0, 256, 65535])
def test_more_channels_than_a_sound_has_are_refused(channels: int) -> None:
    assert read_until_error(Sound(wav(bytes(70_000), channels=channels)), f"{channels} channels") == []


def test_a_block_of_many_channels_has_fewer_frames() -> None:
    file = wav(bytes(255 * 3000), channels=255)
    with limit_peak_memory(8 << 20):
        assert max(len(block) for block in Sound(file)) == BLOCK // 255


def test_a_length_that_the_header_says_is_refused_before_it_is_decoded() -> None:
    for file in (flac_of_silence(20), wav(bytes(20 * FRAME)), written("OGG", "VORBIS", 30)):
        assert read_until_error(Sound(file, limit_s=20), "takes [0-9]+ s; the limit is 20") == []


def test_a_length_that_the_header_hides_stops_the_decoder_at_the_limit() -> None:
    """45 hours in 0.6 MB, which would take 10 GB as samples."""
    file = flac_of_silence(39_550, says=0)
    assert len(file) < 700_000
    lengths = read_until_error(Sound(file, limit_s=60), "the limit is 60")
    assert 60 * 16000 - 2 * BLOCK < sum(lengths) <= 60 * 16000


def test_the_limit_of_a_sound_is_a_day() -> None:
    header = flac_of_silence(1, says=25 * 3600 * 16000)
    assert read_until_error(Sound(header), "takes 90000 s; the limit is 86400") == []
    assert len(Sound(flac_of_silence(30)).read()) == 30 * FRAME


@pytest.mark.parametrize(
    ("format", "subtype"), [("MP3", "MPEG_LAYER_III"), ("OGG", "OPUS"), ("OGG", "VORBIS"), ("WAV", "IMA_ADPCM")]
)
def test_formats_of_libsndfile_stop_at_the_limit(format: str, subtype: str) -> None:
    file = written(format, subtype, 40)
    assert sum(read_until_error(Sound(file, limit_s=10), "the limit is 10")) <= 10 * 16000
    assert len(Sound(file, limit_s=41).read()) == pytest.approx(40 * 16000, abs=4000)


def test_a_damaged_file_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    raw = bytearray(written("AIFF", "PCM_S8", 1))
    at = raw.index(b"SSND")
    raw[at : at + 4] = bytes(4)  # libsndfile goes on to byte -1
    assert not len(Sound(bytes(raw)).read())
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_without_an_end_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PIPE_BYTES", 1 << 20)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    program = f"import itertools; f = open({str(path)!r}, 'wb'); [f.write(bytes(4096)) for _ in itertools.count()]"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as writer:
        try:
            with limit_peak_memory(8 << 20):
                assert read_until_error(Sound(path), "pipe has more than 1048576 bytes") == []
        finally:
            writer.kill()
    with pytest.raises(AudioError, match="stdin has more than"):
        limits.read_pipe(io.BytesIO(bytes(2 << 20)), "stdin")


# -------------------------------------------------------------------------------------------------------------- ffmpeg


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The processes of ffmpeg, which then reads every file; all have ended after the test."""
    if decoders._ffmpeg() is None:
        pytest.skip("ffmpeg is not installed")
    started: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    def refuse(*args: Any) -> Any:
        raise soundfile.LibsndfileError(1)

    monkeypatch.setattr(decoders.subprocess, "Popen", Popen)
    monkeypatch.setattr(soundfile, "SoundFile", refuse)
    yield started
    assert started
    assert all(program.poll() is not None for program in started)


def test_ffmpeg_is_killed_at_the_limit(programs: list[Any]) -> None:
    file = flac_of_silence(5000, says=0)
    assert sum(read_until_error(Sound(file, limit_s=20), "the limit is 20")) <= 20 * 16000
    assert programs[0].returncode == -9


def test_ffmpeg_is_killed_when_nobody_wants_the_rest(programs: list[Any]) -> None:
    blocks = iter(Sound(flac_of_silence(5000, says=0)))
    next(blocks)
    blocks.close()
    assert programs[0].returncode == -9


def test_a_decoder_that_finds_no_sound_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "FFMPEG_STALLED_S", 0.2)
    with open(tmp_path / "errors", "w+b") as errors, pytest.raises(AudioError, match="no sound for 0 s"):
        list(decoders._samples_of(["sleep", "600"], errors, "a file"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_memory_of_a_decoder_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "FFMPEG_BYTES", 1 << 29)
    program = """
import resource, sys, time
while resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
    time.sleep(0.01)
sys.stdout.buffer.write(bytearray(1 << 30)[:1000])
"""
    with open(tmp_path / "errors", "w+b") as errors, pytest.raises(AudioError, match="MemoryError"):
        list(decoders._samples_of([sys.executable, "-c", program], errors, "a file"))

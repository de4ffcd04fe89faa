"""Sound as recorders, pipes and telephones leave it: what libsndfile and ffmpeg read, `Sound` reads."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tallow.audio import Sound
from tallow.errors import AudioError, TallowWarning

soundfile = pytest.importorskip("soundfile")

TONE = (np.sin(np.arange(1600) / 10) * 0.5).astype(np.float32)
PCM = np.rint(TONE * 32768).astype("<i2").tobytes()


def wav(size: int, data: bytes = PCM, *, frame_bytes: int = 2, bits: int = 16) -> bytes:
    """Write a WAV file of one channel whose header says that the sound has `size` bytes."""
    head = struct.pack("<HHIIHH", 1, 1, 16000, 32000, frame_bytes, bits)
    riff_size = (36 + size) & 0xFFFFFFFF
    return (
        struct.pack("<4sI8sI", b"RIFF", riff_size, b"WAVEfmt ", 16) + head + struct.pack("<4sI", b"data", size) + data
    )


# SoX writes 0x7FFFF000 to a pipe, speech services 0x7FFFFFFF, arecord 0x80000000, ffmpeg 0xFFFFFFFF.
@pytest.mark.parametrize(
    "size", [0, 0x7FFFF000, 0x7FFFFFFF - 36, 0x7FFFFFFF, 0x80000000, 0xFFFFFF00, 0xFFFFFFFF - 36, 0xFFFFFFFF], ids=hex
)
def test_a_size_that_was_unknown_when_it_was_written(size: int) -> None:
    np.testing.assert_allclose(Sound(wav(size)).read(), TONE, atol=1e-4)


@pytest.mark.parametrize("cut", [1, 2, 801, len(PCM) - 2])
def test_a_recording_that_a_crash_ended(cut: int) -> None:
    with pytest.warns(TallowWarning, match=rf"truncated: {cut} of {len(PCM)} bytes of sound are missing"):
        read = Sound(wav(len(PCM), PCM[:-cut])).read()
    np.testing.assert_allclose(read, TONE[: (len(PCM) - cut) // 2], atol=1e-4)


def test_frames_of_no_size() -> None:
    np.testing.assert_allclose(Sound(wav(len(PCM), frame_bytes=0)).read(), TONE, atol=1e-4)


@pytest.mark.parametrize(("bits", "frame_bytes"), [(12, 2), (20, 3), (24, 4), (20, 4)])
def test_samples_of_fewer_bits_than_their_bytes(bits: int, frame_bytes: int) -> None:
    """The format says that they are the upper bits, and the lower ones are zero."""
    values = np.rint(TONE.astype(float) * 2 ** (bits - 1)).astype(int) << 8 * frame_bytes - bits
    data = b"".join(int(value).to_bytes(frame_bytes, "little", signed=True) for value in values)
    read = Sound(wav(len(data), data, frame_bytes=frame_bytes, bits=bits)).read()
    np.testing.assert_allclose(read, TONE, atol=0.6 / 2 ** (bits - 1))


CODECS = [name for name in soundfile.available_subtypes("WAV") if name != "MPEG_LAYER_III"]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_that_libsndfile_has_for_wav(codec: str) -> None:
    file = io.BytesIO()
    soundfile.write(file, TONE, 16000, codec, format="WAV")
    expected, _ = soundfile.read(io.BytesIO(file.getvalue()), dtype="float32")
    np.testing.assert_allclose(Sound(file.getvalue()).read(), expected, atol=1e-6)


def test_a_codec_that_nobody_knows_is_named() -> None:
    file = wav(len(PCM)).replace(struct.pack("<HH", 1, 1), struct.pack("<HH", 0x1234, 1))
    with pytest.raises(AudioError, match=r"samples of 16 bits in WAV format 4660|cannot be read as audio"):
        Sound(file).read()


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG"])
@pytest.mark.parametrize("form", ["{1} < <(cat {0})", "cat {0} | {1}"], ids=["substitution", "pipe"])
def test_a_pipe_by_its_name(kind: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"tone.{kind.lower()}"
    soundfile.write(path, TONE, 16000)
    program = "from tallow.audio import Sound; s = Sound('/dev/stdin'); print(len(s.read()), len(s.read()))"
    command = form.format(path, f'{sys.executable} -c "{program}"')
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1600", "1600"], done.stderr

"""Decode audio files other than WAV: FLAC, Ogg, MP3 and AIFF with libsndfile; m4a, mp4, webm and others with ffmpeg.

Both are optional: the package soundfile of the extra `audio`, and the program ffmpeg, from the PATH or from the package
imageio-ffmpeg of the extra `media`. ffmpeg runs as a separate process, because its libraries crash on some damaged
files and would crash Python too.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tallow.audio.channels import FLAC_SPEAKERS, OGG_SPEAKERS, WAV_SPEAKERS, mono_weights, speakers_by_count
from tallow.core.extras import install_command
from tallow.errors import AudioError, MissingPackageError
from tallow.io.source import Path

Floats = npt.NDArray[np.float32]

BLOCK = 1 << 16  # frames
# ffmpeg also reads playlists, which name other files and URLs. Untrusted files must not do that.
CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,aac,ac3,eac3,amr,asf,avi,mp3,ogg,flac,wav,aiff,caf,w64,au,mpegts"


def decode(source: Path | bytes, name: str, rate_hz: int) -> tuple[int, Iterator[Floats]]:
    """Return the sample rate of a file, and its samples mixed to one channel.

    Args:
        source: a path, or the file's bytes.
        name: name of the file in errors.
        rate_hz: the desired rate; decoders that can resample do.

    Shapes:  blocks (N,), float32 from -1 to 1
    Raises:  AudioError if the file is not audio or is damaged, possibly while the blocks are read; MissingPackageError
    """
    ffmpeg = _ffmpeg()
    try:
        import soundfile  # optional: the extra `audio`
    except ImportError as error:
        if ffmpeg is None:
            raise MissingPackageError("soundfile", f"reading {name}, which is not a WAV file,", "audio") from error
        return rate_hz, _blocks_by_ffmpeg(ffmpeg, source, name, rate_hz)
    try:
        opened = soundfile.SoundFile(io.BytesIO(source) if isinstance(source, bytes) else source)
    except soundfile.LibsndfileError as error:
        if ffmpeg is None:
            raise AudioError(
                f"{name} cannot be read as audio: {error.error_string.rstrip('.')}",
                hint="m4a, mp4 and webm need the program ffmpeg: install it, or "
                + install_command("media", otherwise="imageio-ffmpeg"),
            ) from error
        return rate_hz, _blocks_by_ffmpeg(ffmpeg, source, name, rate_hz)
    return opened.samplerate, _blocks_by_libsndfile(opened, name)


def _blocks_by_libsndfile(opened: Any, name: str) -> Iterator[Floats]:
    import soundfile  # optional: the extra `audio`

    by_count = {"OGG": OGG_SPEAKERS, "FLAC": FLAC_SPEAKERS}.get(opened.format, WAV_SPEAKERS)
    weights = mono_weights(opened.channels, speakers_by_count(opened.channels, by_count))
    try:
        while len(block := opened.read(BLOCK, dtype="float32", always_2d=True)):
            yield block @ weights
    except soundfile.LibsndfileError as error:
        raise _unreadable(name, error.error_string) from error
    finally:
        opened.close()


def _ffmpeg() -> str | None:
    """Return the path of the program ffmpeg, if it exists."""
    if path := shutil.which("ffmpeg"):
        return path
    try:
        import imageio_ffmpeg  # optional: the extra `media`
    except ImportError:
        return None
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def _blocks_by_ffmpeg(ffmpeg: str, source: Path | bytes, name: str, rate_hz: int) -> Iterator[Floats]:
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(source, bytes):  # not through a pipe: the index of an m4a may be at its end
            path = os.path.join(folder, "sound")
            with open(path, "wb") as file:
                file.write(source)
        else:
            path = os.path.abspath(source)
        input_options = ("-protocol_whitelist", "file", "-format_whitelist", CONTAINERS, "-i", f"file:{path}")
        # As in openai-whisper. For float output, ffmpeg would not normalise the weights to sum to 1.
        output_options = ("-map", "0:a:0", "-ac", "1", "-ar", str(rate_hz), "-f", "s16le", "-")
        command = [ffmpeg, "-nostdin", "-v", "error", "-xerror", *input_options, *output_options]
        with open(os.path.join(folder, "errors"), "w+b") as errors:
            yield from _samples_of(command, errors, name)


def _samples_of(command: list[str], errors: BinaryIO, name: str) -> Iterator[Floats]:
    """Yield the 16-bit samples that a program writes, as floats. Closing the iterator kills the program."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
    assert process.stdout is not None
    try:
        while raw := process.stdout.read(2 * BLOCK):
            yield np.frombuffer(raw, "<i2", len(raw) // 2).astype(np.float32) / np.float32(32768)
        if process.wait():
            errors.seek(0)
            lines = errors.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
            raise _unreadable(name, lines[-1] if lines else f"ffmpeg ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _unreadable(name: str, why: str) -> AudioError:
    return AudioError(f"{name} cannot be read as audio: {why}", hint="convert it: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav")

"""Sound files other than WAV: libsndfile reads FLAC, Ogg, MP3 and AIFF; ffmpeg the rest, such as m4a, mp4 and webm.

Both are optional: the package soundfile of the extra `audio`; and the program ffmpeg, which is taken from the path or
from the package imageio-ffmpeg of the extra `media`. It runs as a process of its own, because its libraries crash on
some damaged files, and would take Python along.
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
from tallow.errors import AudioError, MissingPackageError
from tallow.installing import command
from tallow.io.source import Path

Floats = npt.NDArray[np.float32]

BLOCK = 1 << 16  # frames
# ffmpeg also reads playlists, which name other files and addresses. No file that is read here may.
CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,aac,ac3,eac3,amr,asf,avi,mp3,ogg,flac,wav,aiff,caf,w64,au,mpegts"


def decode(source: Path | bytes, name: str, rate_hz: int) -> tuple[int, Iterator[Floats]]:
    """The sample rate, and the sound of a file, mixed to one channel.

    Args:
        source: a path, or the file's bytes.
        name: what errors call the file.
        rate_hz: the rate that is wanted; decoders that can change it do.

    Shapes:  blocks (N,), float32 from -1 to 1
    Raises:  AudioError when it is no sound or damaged, also while the blocks are read; MissingPackageError
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
                f"{name} cannot be read as sound: {error.error_string}",
                mend="m4a, mp4 and webm need the program ffmpeg: install it, or "
                + command("media", otherwise="imageio-ffmpeg"),
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
    """Where the program is, if there is one."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        import imageio_ffmpeg  # optional: the extra `media`
    except ImportError:
        return None
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def _blocks_by_ffmpeg(ffmpeg: str, source: Path | bytes, name: str, rate_hz: int) -> Iterator[Floats]:
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(source, bytes):  # not through a pipe: the index of an m4a may stand at its end
            path = os.path.join(folder, "sound")
            with open(path, "wb") as file:
                file.write(source)
        else:
            path = os.path.abspath(source)
        reading = ("-protocol_whitelist", "file", "-format_whitelist", CONTAINERS, "-i", f"file:{path}")
        # As openai-whisper asks for it. With floats to be made, ffmpeg would not let the weights add up to 1.
        making = ("-map", "0:a:0", "-ac", "1", "-ar", str(rate_hz), "-f", "s16le", "-")
        command = [ffmpeg, "-nostdin", "-v", "error", "-xerror", *reading, *making]
        with open(os.path.join(folder, "errors"), "w+b") as errors:
            yield from _samples_of(command, errors, name)


def _samples_of(command: list[str], errors: BinaryIO, name: str) -> Iterator[Floats]:
    """The 16-bit samples that a program writes, as floats. It ends when nobody reads on."""
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
    return AudioError(f"{name} cannot be read as sound: {why}", mend="convert it: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav")

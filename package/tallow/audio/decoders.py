"""Decode audio files other than plain WAV: FLAC, Ogg, MP3, AIFF and other codecs in WAV with libsndfile; m4a, mp4, webm
and others with ffmpeg.

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
import threading
from collections.abc import Generator
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tallow.audio.channels import FLAC_SPEAKERS, OGG_SPEAKERS, WAV_SPEAKERS, mono_weights, speakers_by_count
from tallow.audio.limits import BLOCK, frames_per_block, require_form, require_length
from tallow.errors import AudioError, MissingPackageError
from tallow.extras import install_command
from tallow.io.source import Path

Floats = npt.NDArray[np.float32]

UNKNOWN_FRAMES = (1 << 63) - 1  # how libsndfile says that a header has no length
FFMPEG_BYTES = 2 << 30  # of address space; usual files take a quarter of it
FFMPEG_STALLED_S = 60.0  # without a sample, after which it is killed
# ffmpeg also reads playlists, which name other files and URLs. Untrusted files must not do that.
CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,aac,ac3,eac3,amr,asf,avi,mp3,ogg,flac,wav,aiff,caf,w64,au,mpegts"


def decode(source: Path | bytes, name: str, rate_hz: int, limit_s: float) -> tuple[int, Generator[Floats, None, None]]:
    """Return the sample rate of a file, and its samples mixed to one channel. Closing the iterator ends the decoder.

    Args:
        source: a path, or the file's bytes.
        name: name of the file in errors.
        rate_hz: the desired rate; decoders that can resample do.
        limit_s: the longest sound. A file whose header says more is not decoded.

    Shapes:  blocks (N,), float32 from -1 to 1
    Raises:  AudioError if the file is not audio, too long or damaged, possibly while the blocks are read;
             MissingPackageError
    """
    ffmpeg = _ffmpeg()
    try:
        import soundfile  # optional: the extra `audio`
    except ImportError as error:
        if ffmpeg is None:
            raise MissingPackageError(
                "soundfile", f"reading {name}, which is not a plain WAV file,", "audio"
            ) from error
        return rate_hz, _blocks_by_ffmpeg(ffmpeg, source, name, rate_hz)
    try:
        opened = soundfile.SoundFile(_Memory(source) if isinstance(source, bytes) else source)
    except soundfile.LibsndfileError as error:
        if ffmpeg is None:
            raise AudioError(
                f"{name} cannot be read as audio: {error.error_string.rstrip('.')}",
                hint="m4a, mp4 and webm need the program ffmpeg: install it, or "
                + install_command("media", otherwise="imageio-ffmpeg"),
            ) from error
        return rate_hz, _blocks_by_ffmpeg(ffmpeg, source, name, rate_hz)
    try:
        require_form(name, opened.samplerate, opened.channels)
        if opened.frames != UNKNOWN_FRAMES:
            require_length(name, opened.frames / opened.samplerate, limit_s)
    except AudioError:
        opened.close()
        raise
    frames = frames_per_block(opened.samplerate, rate_hz, opened.channels)
    return opened.samplerate, _blocks_by_libsndfile(opened, frames, name)


class _Memory(io.BytesIO):
    """A file in memory whose position stays inside it. For the error of a seek, soundfile prints a traceback."""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        try:
            return super().seek(offset, whence)
        except (ValueError, OverflowError):
            return self.tell()


def _blocks_by_libsndfile(opened: Any, frames: int, name: str) -> Generator[Floats, None, None]:
    import soundfile  # optional: the extra `audio`

    by_count = {"OGG": OGG_SPEAKERS, "FLAC": FLAC_SPEAKERS}.get(opened.format, WAV_SPEAKERS)
    weights = mono_weights(opened.channels, speakers_by_count(opened.channels, by_count))
    try:
        while len(block := opened.read(frames, dtype="float32", always_2d=True)):
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


def _blocks_by_ffmpeg(ffmpeg: str, source: Path | bytes, name: str, rate_hz: int) -> Generator[Floats, None, None]:
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
        command = [ffmpeg, "-nostdin", "-v", "error", "-xerror", "-threads", "1", *input_options, *output_options]
        with open(os.path.join(folder, "errors"), "w+b") as errors:
            yield from _samples_of(command, errors, name)


def _samples_of(command: list[str], errors: BinaryIO, name: str) -> Generator[Floats, None, None]:
    """Yield the 16-bit samples that a program writes, as floats. Closing the iterator kills the program."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
    try:
        _limit_memory(process.pid)
        while raw := _read(process, 2 * BLOCK, name):
            yield np.frombuffer(raw, "<i2", len(raw) // 2).astype(np.float32) / np.float32(32768)
        if process.wait():
            errors.seek(0)
            lines = errors.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
            raise _unreadable(name, lines[-1] if lines else f"ffmpeg ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _limit_memory(pid: int) -> None:
    """Limit the memory of a process, where the system can; a program that needs more ends with an error."""
    with suppress(ImportError, AttributeError, ProcessLookupError):  # Windows; macOS; it has ended already
        import resource

        _, hard = resource.prlimit(pid, resource.RLIMIT_AS)  # which the user may have set lower
        most = FFMPEG_BYTES if hard == resource.RLIM_INFINITY else min(FFMPEG_BYTES, hard)
        resource.prlimit(pid, resource.RLIMIT_AS, (most, hard))


def _read(process: subprocess.Popen[bytes], size: int, name: str) -> bytes:
    """Return the next bytes that a program writes; kill it if it writes none for too long.  Raises: AudioError then"""
    assert process.stdout is not None
    stalled = threading.Event()

    def end() -> None:
        stalled.set()
        process.kill()

    timer = threading.Timer(FFMPEG_STALLED_S, end)
    timer.daemon = True
    timer.start()
    try:
        raw = process.stdout.read(size)
    finally:
        timer.cancel()
    if stalled.is_set():
        raise _unreadable(name, f"ffmpeg found no sound for {FFMPEG_STALLED_S:.0f} s")
    return raw


def _unreadable(name: str, why: str) -> AudioError:
    return AudioError(f"{name} cannot be read as audio: {why}", hint="convert it: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav")

"""Sound of any file as models hear it: one channel, at one sample rate, a block at a time.

WAV files are read by `tallow.audio.wav`, all others by libsndfile, and rates are changed by the SoX resampler: the
packages soundfile and soxr of the extra `audio`. A web page decodes and resamples with WebAudio before it gets here.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tallow.audio.wav import WavReader
from tallow.errors import AudioError, MissingPackageError
from tallow.io.source import Path

SAMPLE_RATE_HZ = 16000
BLOCK = 1 << 16  # frames

Floats = npt.NDArray[np.float32]


class Sound:
    """A file's sound, mixed to one channel. Iterating reads the file anew, in blocks, so that an hour takes no more
    memory than a second.

    Args:
        source: a path, or a file's bytes.
        sample_rate_hz: of the blocks, whatever the file's is.
        name: what errors call a file in memory.

    Shapes:  blocks (N,), float32 from -1 to 1
    Raises:  while iterating: OSError; AudioError when it is no sound, truncated or damaged; MissingPackageError

    Example:
        samples = Sound("talk.mp3").read()
    """

    def __init__(
        self, source: Path | bytes, *, sample_rate_hz: int = SAMPLE_RATE_HZ, name: str = "the sound in memory"
    ) -> None:
        self.source = source
        self.sample_rate_hz = sample_rate_hz
        self.name = name if isinstance(source, bytes) else os.fspath(source)

    def __iter__(self) -> Iterator[Floats]:
        with self._open() as file:
            if file.read(4) == b"RIFF":
                file.seek(0)
                wav = WavReader(file, self.name)
                rate, blocks = wav.sample_rate_hz, wav.blocks(BLOCK)
            else:
                file.seek(0)
                rate, blocks = _by_libsndfile(file, self.name)
            mono = (block.mean(axis=1, dtype=np.float32) for block in blocks)
            yield from mono if rate == self.sample_rate_hz else _resample(mono, rate, self.sample_rate_hz)

    def read(self) -> Floats:
        """All of it at once."""
        return np.concatenate([np.zeros(0, np.float32), *self])

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if isinstance(self.source, bytes):
            yield io.BytesIO(self.source)
        else:
            with open(self.source, "rb") as file:
                yield file


def _by_libsndfile(file: BinaryIO, name: str) -> tuple[int, Iterator[Floats]]:
    try:
        import soundfile  # optional: the extra `audio`
    except ImportError as error:
        raise MissingPackageError("soundfile", f"reading {name}, which is not a WAV file,", "audio") from error
    try:
        opened = soundfile.SoundFile(file)
    except soundfile.LibsndfileError as error:
        raise _unreadable(name, error) from error
    return opened.samplerate, _blocks_of(opened, name)


def _blocks_of(opened: Any, name: str) -> Iterator[Floats]:
    import soundfile  # optional: the extra `audio`

    try:
        while len(block := opened.read(BLOCK, dtype="float32", always_2d=True)):
            yield block
    except soundfile.LibsndfileError as error:
        raise _unreadable(name, error) from error
    finally:
        opened.close()


def _unreadable(name: str, error: Exception) -> AudioError:
    return AudioError(
        f"{name} cannot be read as sound: {getattr(error, 'error_string', error)}",
        mend="convert it: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav",
    )


def _resample(blocks: Iterator[Floats], from_hz: int, to_hz: int) -> Iterator[Floats]:
    try:
        import soxr  # optional: the extra `audio`
    except ImportError as error:
        raise MissingPackageError("soxr", f"changing the sample rate from {from_hz} to {to_hz} Hz", "audio") from error
    resampler = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32")
    for block in blocks:
        yield resampler.resample_chunk(block)
    yield resampler.resample_chunk(np.zeros(0, np.float32), last=True)

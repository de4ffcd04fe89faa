"""Read audio files as models need them: one channel, at a given sample rate, block by block.

`tallow.audio.wav` reads plain WAV files, `tallow.audio.decoders` all others. The SoX resampler, from the package soxr
of the extra `audio`, changes sample rates. In a browser, the page decodes and resamples with WebAudio first.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tallow.audio.channels import mono_weights
from tallow.audio.decoders import decode
from tallow.audio.limits import LIMIT_S, SoundLimitError, frames_per_block, read_pipe, require_length, up_to
from tallow.audio.wav import UnknownCodecError, WavReader
from tallow.errors import AudioError, MissingPackageError
from tallow.io.regular import regular_or_pipe
from tallow.io.source import Path

SAMPLE_RATE_HZ = 16000

Floats = npt.NDArray[np.float32]


class Sound:
    """The audio of a file, mixed to one channel. Each iteration reads the file again, in blocks, so memory use does not
    depend on its length. Rates from 1 to 768 kHz and up to 255 channels are read.

    Args:
        source: a path, or a file's bytes. A pipe such as `/dev/stdin`, which can be read only once, is kept in memory.
        sample_rate_hz: sample rate of the blocks.
        name: name of a file in memory in errors.
        limit_s: the longest sound to read, in seconds. Few bytes can hold a very long silence.

    Shapes:  blocks (N,), float32 from -1 to 1
    Raises:  while iterating: OSError; AudioError if the file is not audio, damaged, or too long, for which decoding
             stops at the limit; MissingPackageError
    Warns:   TallowWarning if a WAV file ends before its sound

    Example:
        samples = Sound("talk.mp3").read()
    """

    def __init__(
        self,
        source: Path | bytes,
        *,
        sample_rate_hz: int = SAMPLE_RATE_HZ,
        name: str = "the sound in memory",
        limit_s: float = LIMIT_S,
    ) -> None:
        self.source = source
        self.sample_rate_hz = sample_rate_hz
        self.limit_s = limit_s
        self.name = name if isinstance(source, bytes) else os.fspath(source)

    def __iter__(self) -> Generator[Floats, None, None]:
        with self._open() as file:
            is_wav = file.read(4) == b"RIFF"
            file.seek(0)
            rate, mono = self._plain_wav(file) if is_wav else self._decoded()
            with closing(mono):  # ends a decoder's process as soon as nobody wants the rest
                blocks = mono if rate == self.sample_rate_hz else _resample(mono, rate, self.sample_rate_hz)
                yield from up_to(self.limit_s, blocks, self.sample_rate_hz, self.name)

    def read(self) -> Floats:
        """Return all samples at once."""
        return np.concatenate([np.zeros(0, np.float32), *self])

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if not isinstance(self.source, bytes):
            with open(self.source, "rb", opener=regular_or_pipe) as file:
                if file.seekable():
                    yield file
                    return
                self.source = read_pipe(file, self.name)
        yield io.BytesIO(self.source)

    def _plain_wav(self, file: BinaryIO) -> tuple[int, Generator[Floats, None, None]]:
        """Return the sample rate and the samples of a WAV file."""
        try:
            wav = WavReader(file, self.name)
        except UnknownCodecError as error:
            try:
                return self._decoded()
            except SoundLimitError:
                raise
            except AudioError as failure:
                raise error from failure  # it names the codec
        start = file.tell()
        frames = wav.frames_in(file.seek(0, io.SEEK_END) - start)
        file.seek(start)
        require_length(self.name, frames / wav.sample_rate_hz, self.limit_s)
        return wav.sample_rate_hz, _mixed(wav, self.sample_rate_hz)

    def _decoded(self) -> tuple[int, Generator[Floats, None, None]]:
        return decode(self.source, self.name, self.sample_rate_hz, self.limit_s)


def _mixed(wav: WavReader, wanted_hz: int) -> Generator[Floats, None, None]:
    weights = mono_weights(wav.channels, wav.speakers)
    for block in wav.blocks(frames_per_block(wav.sample_rate_hz, wanted_hz, wav.channels)):
        yield block @ weights


def resample(samples: Floats, from_hz: int, to_hz: int) -> Floats:
    """Return samples at another rate.

    Shapes:  samples (N,) -> about (N * to_hz / from_hz,)
    Raises:  MissingPackageError without the package soxr, where the rates differ
    """
    if from_hz == to_hz:
        return samples
    return np.concatenate([*_resample(iter([np.asarray(samples, np.float32)]), from_hz, to_hz)])


def _resample(blocks: Iterator[Floats], from_hz: int, to_hz: int) -> Iterator[Floats]:
    try:
        import soxr  # optional: the extra `audio`
    except ImportError as error:
        raise MissingPackageError("soxr", f"changing the sample rate from {from_hz} to {to_hz} Hz", "audio") from error
    resampler = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32")
    for block in blocks:
        yield resampler.resample_chunk(block)
    yield resampler.resample_chunk(np.zeros(0, np.float32), last=True)

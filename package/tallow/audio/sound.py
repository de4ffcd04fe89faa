"""Read audio files as models need them: one channel, at a given sample rate, block by block.

`tallow.audio.wav` reads WAV files, `tallow.audio.decoders` all others. The SoX resampler, from the package soxr of the
extra `audio`, changes sample rates. In a browser, the page decodes and resamples with WebAudio first.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tallow.audio.channels import mono_weights
from tallow.audio.decoders import BLOCK, decode
from tallow.audio.wav import WavReader
from tallow.errors import MissingPackageError
from tallow.io.source import Path

SAMPLE_RATE_HZ = 16000

Floats = npt.NDArray[np.float32]


class Sound:
    """The audio of a file, mixed to one channel. Each iteration reads the file again, in blocks, so memory use does not
    depend on its length.

    Args:
        source: a path, or a file's bytes.
        sample_rate_hz: sample rate of the blocks.
        name: name of a file in memory in errors.

    Shapes:  blocks (N,), float32 from -1 to 1
    Raises:  while iterating: OSError; AudioError if the file is not audio, truncated or damaged; MissingPackageError

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
            is_wav = file.read(4) == b"RIFF"
            file.seek(0)
            if is_wav:
                wav = WavReader(file, self.name)
                rate, mono = wav.sample_rate_hz, _mixed(wav)
            else:
                rate, mono = decode(self.source, self.name, self.sample_rate_hz)
            yield from mono if rate == self.sample_rate_hz else _resample(mono, rate, self.sample_rate_hz)

    def read(self) -> Floats:
        """Return all samples at once."""
        return np.concatenate([np.zeros(0, np.float32), *self])

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if isinstance(self.source, bytes):
            yield io.BytesIO(self.source)
        else:
            with open(self.source, "rb") as file:
                yield file


def _mixed(wav: WavReader) -> Iterator[Floats]:
    weights = mono_weights(wav.channels, wav.speakers)
    for block in wav.blocks(BLOCK):
        yield block @ weights


def _resample(blocks: Iterator[Floats], from_hz: int, to_hz: int) -> Iterator[Floats]:
    try:
        import soxr  # optional: the extra `audio`
    except ImportError as error:
        raise MissingPackageError("soxr", f"changing the sample rate from {from_hz} to {to_hz} Hz", "audio") from error
    resampler = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32")
    for block in blocks:
        yield resampler.resample_chunk(block)
    yield resampler.resample_chunk(np.zeros(0, np.float32), last=True)

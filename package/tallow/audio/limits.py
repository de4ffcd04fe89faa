"""Bounds on sounds, which are checked before a sound is decoded, and again while it is.

A few bytes can hold hours of silence, and a header can say a rate at which resampling multiplies the samples. Memory
and work follow from these numbers, not from the size of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tallow.errors import AudioError

RATES_HZ = (1_000, 768_000)  # telephones have 8,000; the fastest converters of sound 768,000
MOST_CHANNELS = 255  # the most that the header of Vorbis or Opus can say
BLOCK = 1 << 16  # samples of all channels that are decoded at once, also after resampling
# Of a sound that can be read once only, and is kept in memory; a day of 16 bits in 16 kHz is 2.8 GB.
PIPE_BYTES, PIPE_PART = 4 << 30, 1 << 20
LIMIT_S = 24 * 3600.0  # an audiobook; silence compresses to a day in 300 kB

Floats = npt.NDArray[np.float32]


class SoundLimitError(AudioError):
    """A sound beyond these bounds."""


def require_form(name: str, rate_hz: int, channels: int) -> None:
    """Raise SoundLimitError for a sample rate or a number of channels that no sound has."""
    low, high = RATES_HZ
    if not low <= rate_hz <= high or not 1 <= channels <= MOST_CHANNELS:
        raise SoundLimitError(
            f"{name}: {channels} channels at {rate_hz} Hz; a sound has 1 to {MOST_CHANNELS} at {low} to {high} Hz",
            hint="its header may be damaged; convert it: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav",
        )


def frames_per_block(rate_hz: int, wanted_hz: int, channels: int) -> int:
    """Return how many frames to decode at once, for blocks of at most BLOCK samples before and after resampling."""
    return max(1, min(BLOCK // channels, BLOCK * rate_hz // wanted_hz))


def require_length(name: str, seconds: float, limit_s: float) -> None:
    """Raise SoundLimitError for a sound that is too long."""
    if seconds > limit_s:
        raise SoundLimitError(
            f"{name} takes {seconds:.0f} s; the limit is {limit_s:.0f}", hint="send or read it in parts"
        )


def read_pipe(file: BinaryIO, name: str) -> bytes:
    """Return all bytes of a file that cannot be read twice.  Raises: SoundLimitError if they are too many"""
    parts, size = [], 0
    while part := file.read(PIPE_PART):
        parts.append(part)
        size += len(part)
        if size > PIPE_BYTES:
            raise SoundLimitError(f"{name} has more than {PIPE_BYTES} bytes", hint="write it to a file first")
    return b"".join(parts)


def up_to(limit_s: float, blocks: Iterator[Floats], rate_hz: int, name: str) -> Iterator[Floats]:
    """Yield blocks until they exceed a limit.  Raises: SoundLimitError there"""
    samples = 0
    for block in blocks:
        samples += len(block)
        require_length(name, samples / rate_hz, limit_s)
        yield block

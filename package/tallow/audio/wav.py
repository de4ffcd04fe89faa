"""Read and write WAV files: RIFF chunks, of which "fmt " describes the samples in "data".

    "RIFF" uint32 size "WAVE"   then chunks: four letters, uint32 size, that many bytes, one more if the size is odd
    fmt    uint16 format, uint16 channels, uint32 sample rate, uint32 bytes per second, uint16 bytes per frame,
           uint16 bits per sample; if format is 0xFFFE, a uint32 speaker mask at byte 20 of the chunk and the actual
           format at byte 24
    data   frames: one sample of each channel

The reader supports integers of 8 (unsigned), 16, 24 and 32 bits, floats of 32 and 64 bits, A-law and mu-law. Other
codecs are left to libsndfile and ffmpeg, in `tallow.audio.decoders`.

Source:  Microsoft & IBM 1991, "Multimedia Programming Interface and Data Specifications 1.0"; Microsoft, mmreg.h, and
         "Multiple channel audio data and WAVE files" (samples of fewer bits than their bytes);
         ITU-T G.711 for A-law and mu-law
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tallow.audio.channels import speakers_of_mask
from tallow.audio.limits import require_form
from tallow.audio.telephone import a_law, mu_law
from tallow.errors import ArgumentError, AudioError, TallowWarning, warn
from tallow.io.atomic import atomic_write
from tallow.io.source import Path, shown

PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
SAMPLE_BITS = {PCM: (8, 16, 24, 32), FLOAT: (32, 64), A_LAW: (8,), MU_LAW: (8,)}
HEADER = struct.Struct("<4sI4s")
CHUNK = struct.Struct("<4sI")
FORMAT = struct.Struct("<HHIIHH")
MASK_AT, SUBFORMAT_AT = 20, 24
UNKNOWN = 0xFFFFFFFF  # the size that a program writes which does not know it
MARGIN = 4096  # SoX writes 0x7FFFF000, others the largest size less the headers
MAX_FORMAT_BYTES = 1 << 16

Floats = npt.NDArray[np.float32]


class UnknownCodecError(AudioError):
    """A WAV file whose samples this reader does not decode. Another decoder may."""


class WavReader:
    """Reader of a WAV file's samples, scaled to -1 to 1.

    Args:
        file: a binary file at its start; it need not be seekable.
        name: name of the file in errors.

    Attributes:
        sample_rate_hz, channels: as in the file.
        speakers: speaker of each channel, such as "FL" for front left; empty if unknown.

    Raises:  AudioError if it is not a WAV file, is malformed or truncated before its sound begins, or has a rate or a
             number of channels beyond `tallow.audio.limits`; UnknownCodecError for another sample format
    """

    def __init__(self, file: BinaryIO, name: str = "the sound") -> None:
        self._file = file
        self._name = name
        magic, _, kind = HEADER.unpack(self._read_exactly(HEADER.size, "the header"))
        if magic != b"RIFF" or kind != b"WAVE":
            raise AudioError(f"{name} is not a WAV file: it starts with {shown(magic)}")
        self._format = 0
        while True:
            tag, size = CHUNK.unpack(self._read_exactly(CHUNK.size, 'a chunk header; it has no chunk "data"'))
            if tag == b"data":
                break
            if tag == b"fmt ":
                self._read_format(size)
            else:
                self._skip(size)
            self._skip(size % 2)
        if not self._format:
            raise AudioError(f'{name}: there is no chunk "fmt " before "data"')
        self._bytes = None if _is_unknown(size) else size

    def frames_in(self, size: int) -> int:
        """Return the number of frames, if the file has `size` bytes from here."""
        return (size if self._bytes is None else min(size, self._bytes)) // (self.channels * self._sample_bytes)

    def blocks(self, frames: int = 1 << 16) -> Iterator[Floats]:
        """Yield the rest of the samples, `frames` at a time.

        Shapes:  each (frames, channels), the last one shorter
        Warns:   TallowWarning if the file ends before its sound, as after a crash of the program that recorded it
        """
        frame_bytes = self.channels * self._sample_bytes
        remaining = self._bytes
        while remaining is None or remaining >= frame_bytes:
            size = frames * frame_bytes if remaining is None else min(frames * frame_bytes, remaining)
            raw = self._file.read(size)
            complete = len(raw) - len(raw) % frame_bytes
            if complete:
                yield self._samples(raw[:complete]).reshape(-1, self.channels)
            if remaining is not None:
                remaining -= len(raw)
            if len(raw) < size:
                if remaining:
                    missing = f"{remaining} of {self._bytes} bytes of sound are missing"
                    warn(f"{self._name} is truncated: {missing}; the rest is used", TallowWarning)
                return

    def _read_format(self, size: int) -> None:
        if not FORMAT.size <= size <= MAX_FORMAT_BYTES:
            raise AudioError(f'{self._name}: the chunk "fmt " has {size} bytes')
        raw = self._read_exactly(size, 'the chunk "fmt "')
        kind, self.channels, self.sample_rate_hz, _, frame_bytes, bits = FORMAT.unpack_from(raw)
        mask = 0
        if kind == EXTENSIBLE and size >= SUBFORMAT_AT + 2:
            mask, kind = struct.unpack_from("<IH", raw, MASK_AT)
        require_form(self._name, self.sample_rate_hz, self.channels)
        # Integers of 20 bits, for example, are the upper bits of 3 bytes. Some programs leave the size of a frame 0.
        container = 8 * frame_bytes // self.channels
        width = container if kind == PCM and 0 < bits <= container else bits
        if width not in SAMPLE_BITS.get(kind, ()) or frame_bytes not in (0, self.channels * width // 8):
            raise UnknownCodecError(
                f"{self._name} has samples of {bits} bits in WAV format {kind}, in frames of {frame_bytes} bytes",
                hint="convert it to 16-bit PCM: ffmpeg -i IN -c:a pcm_s16le OUT.wav",
            )
        self._format, self._sample_bytes = kind, width // 8
        self.speakers = speakers_of_mask(mask, self.channels)

    def _samples(self, raw: bytes) -> Floats:
        if self._format == FLOAT:
            return np.frombuffer(raw, f"<f{self._sample_bytes}").astype(np.float32)
        if self._format in (A_LAW, MU_LAW):
            table = a_law() if self._format == A_LAW else mu_law()
            return table[np.frombuffer(raw, np.uint8)]
        if self._sample_bytes == 1:
            return np.frombuffer(raw, np.uint8).astype(np.float32) * _scale(8) - np.float32(1)
        if self._sample_bytes == 3:
            wide = np.zeros((len(raw) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)  # as the upper bytes of 32-bit integers
            return wide.view("<i4")[:, 0].astype(np.float32) * _scale(32)
        return np.frombuffer(raw, f"<i{self._sample_bytes}").astype(np.float32) * _scale(8 * self._sample_bytes)

    def _read_exactly(self, size: int, what: str) -> bytes:
        raw = self._file.read(size)
        if len(raw) < size:
            raise AudioError(f"{self._name} is truncated within {what}", hint="download or copy the file again")
        return raw

    def _skip(self, size: int) -> None:
        while size and (raw := self._file.read(min(size, 1 << 16))):
            size -= len(raw)


def _is_unknown(size: int) -> bool:
    """Return whether a program wrote this size of the sound because it did not know it: 0, or nearly the largest signed
    or unsigned number, or 2^31. A sound of that size would be longer than half a day in 16 kHz."""
    return size == 0 or any(top - MARGIN <= size <= top for top in (1 << 31, UNKNOWN))


def _scale(bits: int) -> np.float32:
    """Return the factor that scales integers of `bits` bits to -1 to 1."""
    return np.float32(0.5 ** (bits - 1))


def wav_head(sample_rate_hz: int, size: int | None, channels: int = 1) -> bytes:
    """Return the head of a WAV file of 16-bit integers.

    Args:    size: of the samples in bytes; None if nobody knows
    Raises:  ArgumentError for more than the file can have, 4 GB
    """
    form = FORMAT.pack(PCM, channels, sample_rate_hz, 2 * channels * sample_rate_hz, 2 * channels, 16)
    before = 4 + 2 * CHUNK.size + len(form)
    whole, size = (UNKNOWN, UNKNOWN) if size is None else (before + size, size)
    if whole > UNKNOWN:
        raise ArgumentError(f"{size} bytes of sound are too many for a WAV file", hint="write several, of 4 GB at most")
    riff = HEADER.pack(b"RIFF", whole, b"WAVE")
    return riff + CHUNK.pack(b"fmt ", len(form)) + form + CHUNK.pack(b"data", size)


def pcm_of(samples: npt.ArrayLike) -> bytes:
    """Return samples as 16-bit integers; values beyond -1 to 1 are clipped."""
    return np.clip(np.rint(np.asarray(samples, np.float32) * 32768), -32768, 32767).astype("<i2").tobytes()


def write_wav(path: Path, samples: npt.ArrayLike, sample_rate_hz: int) -> None:
    """Write a WAV file of 16-bit integers; values beyond -1 to 1 are clipped.

    Shapes:  samples (N,) or (N, channels)
    Raises:  ArgumentError for other shapes; OSError
    """
    values = np.asarray(samples, np.float32)
    if values.ndim not in (1, 2):
        raise ArgumentError(f"write_wav: samples of shape {values.shape}", hint="pass (N,) or (N, channels)")
    channels = 1 if values.ndim == 1 else values.shape[1]
    data = pcm_of(values)
    with atomic_write(path) as file:
        file.write(wav_head(sample_rate_hz, len(data), channels) + data)

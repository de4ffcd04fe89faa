"""Spoken phrases, cached in a file."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.audio.sound import SAMPLE_RATE_HZ
from tallow.errors import MissingPackageError
from tallow.io.atomic import atomic_write

from . import phrases, voices
from .espeak import Espeak, Voice
from .phrases import Phrase
from .settings import Settings

AUDIBLE = 0.003  # relative to the loudest sample; quieter ends are cut off
SILENT_ENDS_S = 0.02  # of which this much is kept
LONGEST_S = 4.6

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Utterance:
    words: Phrase
    voice: Voice


@dataclass(frozen=True)
class Clip:
    """A spoken phrase.

    Attributes:
        samples: (N,), at 16 kHz.
        word_starts: the sample at which each word begins.
    """

    samples: Floats
    words: Phrase
    word_starts: tuple[int, ...]


class Clips:
    """The clips of a file.

    Attributes:  lengths: in samples
    """

    def __init__(self, path: Path) -> None:
        self._samples = np.load(path.with_suffix(".npy"), mmap_mode="r")
        index = json.loads(path.with_suffix(".json").read_bytes())
        self._clips = [(tuple(words), tuple(starts)) for words, starts, _ in index]
        self.lengths = np.array([length for _, _, length in index])
        self._ends = np.cumsum(self.lengths)

    def __len__(self) -> int:
        return len(self._clips)

    def __getitem__(self, i: int) -> Clip:
        words, starts = self._clips[i]
        raw = self._samples[self._ends[i] - self.lengths[i] : self._ends[i]]
        return Clip(raw.astype(np.float32) * np.float32(2**-15), words, starts)


@dataclass(frozen=True)
class Corpus:
    """The training set, and the test set: other phrases by other voices."""

    training: Clips
    held_out: Clips

    @classmethod
    def make(cls, settings: Settings, folder: Path, progress: Any = iter) -> Corpus:
        """As `clips`."""
        return cls(
            clips(settings, folder, progress, held_out=False),
            clips(settings, folder, progress, held_out=True),
        )


def clips(settings: Settings, folder: Path, progress: Any = iter, *, held_out: bool) -> Clips:
    """Generate the clips that the folder lacks.  Args: progress: wraps the iteration over the utterances"""
    batch = list(utterances(settings, held_out=held_out))
    described = json.dumps([asdict(utterance) for utterance in batch]).encode()
    path = folder / f"spoken-{hashlib.sha256(described).hexdigest()[:16]}"
    if not path.with_suffix(".json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _say(batch, path, progress)
    return Clips(path)


def utterances(settings: Settings, *, held_out: bool) -> Iterator[Utterance]:
    rng = random.Random(f"{settings.seed} {held_out}")
    for _ in range(settings.held_out if held_out else settings.clips):
        words = phrases.phrase(rng, held_out=held_out, longest=settings.longest_phrase)
        yield Utterance(words, voices.voice(rng, held_out=held_out))


def _say(batch: list[Utterance], path: Path, progress: Any) -> None:
    """Write the samples, then the positions of phrases and words."""
    espeak = Espeak()
    recorded = [
        clip for utterance in progress(batch) if len((clip := say(espeak, utterance))[0]) < LONGEST_S * SAMPLE_RATE_HZ
    ]
    with atomic_write(path.with_suffix(".npy")) as file:
        np.save(file, np.concatenate([samples for samples, _, _ in recorded]))
    index = [[words, starts, len(samples)] for samples, words, starts in recorded]
    with atomic_write(path.with_suffix(".json")) as file:
        file.write(json.dumps(index).encode())


def say(espeak: Espeak, utterance: Utterance) -> tuple[npt.NDArray[np.int16], Phrase, list[int]]:
    """Return samples at 16 kHz without silence at the ends, the words, and the start of each word."""
    try:
        import soxr
    except ImportError as error:
        raise MissingPackageError("soxr", "resampling", "train") from error

    speech = espeak.say(utterance.words, utterance.voice)
    samples = soxr.resample(speech.samples, espeak.sample_rate_hz, SAMPLE_RATE_HZ)
    audible = np.flatnonzero(np.abs(samples.astype(np.int32)) > AUDIBLE * np.abs(samples.astype(np.int32)).max())
    margin = round(SILENT_ENDS_S * SAMPLE_RATE_HZ)
    first, last = max(audible[0] - margin, 0), min(audible[-1] + margin, len(samples))
    starts = [round(start * SAMPLE_RATE_HZ / espeak.sample_rate_hz) - first for start in speech.word_starts]
    return samples[first:last], utterance.words, [int(np.clip(start, 0, last - first)) for start in starts]

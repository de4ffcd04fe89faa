"""Word error rates: wrong, missing and added words, relative to the spoken words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tallow.audio.mel import log_mel_spectrogram
from tallow.audio.sound import SAMPLE_RATE_HZ
from tallow.models.whisper import Whisper, decode, transcribe

from . import augment
from .corpus import Clips
from .windows import N_MELS, Floats

BATCH = 32
EDGE_S = 0.3  # silence before and after a phrase


@dataclass
class Score:
    """Attributes:
    errors, words: counts.
    wrong: pairs of the spoken text and the transcript.
    """

    errors: int = 0
    words: int = 0
    phrases: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.errors / self.words

    def add(self, reference: Sequence[str], transcript: str) -> None:
        errors = edits(reference, transcript.split())
        self.errors += errors
        self.words += len(reference)
        self.phrases += 1
        if errors:
            self.wrong.append((" ".join(reference), transcript.strip()))

    def row(self, name: str) -> str:
        """Return a row of the table of `table`."""
        right = 1 - len(self.wrong) / self.phrases
        return f"| {name} | {self.phrases} | {self.rate:.1%} | {right:.1%} |"


def edits(reference: Sequence[str], transcript: Sequence[str]) -> int:
    """Return the least number of words to replace, remove or add to turn one into the other (Levenshtein 1966)."""
    row = list(range(len(transcript) + 1))
    for i, word in enumerate(reference, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(transcript, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]


def scores(model: Whisper, clips: Clips) -> list[tuple[str, Score]]:
    """Return the scores of all clips, by the way of listening."""
    count = len(clips)
    return [
        ("`transcribe`", transcribed(model, clips, count, noisy=False)),
        ("`transcribe`, noisy", transcribed(model, clips, count, noisy=True)),
        ("`decode` without times", decoded(model, clips, count)),
    ]


def transcribed(model: Whisper, clips: Clips, count: int, *, noisy: bool) -> Score:
    """Score `transcribe`, with timestamps, as users call it; noisy clips are augmented as in training."""
    score = Score()
    for i in range(min(count, len(clips))):
        sound = _with_silence(clips[i].samples)
        if noisy:
            sound = _noisy(sound, seed=i)
        score.add(clips[i].words, transcribe(model, sound, temperature=0.0).text)
    return score


def decoded(model: Whisper, clips: Clips, count: int) -> Score:
    """Score `decode`, without timestamps, in batches."""
    score = Score()
    for chosen in _batches(min(count, len(clips))):
        mel = np.zeros((len(chosen), N_MELS, 2 * model.config.max_source_positions), np.float32)
        for row, i in zip(mel, chosen, strict=True):
            heard = log_mel_spectrogram(_with_silence(clips[i].samples), N_MELS)[:, : mel.shape[-1]]
            row[:, : heard.shape[1]] = heard
        results = decode(model, mel, without_timestamps=True)
        assert isinstance(results, list)
        for i, result in zip(chosen, results, strict=True):
            score.add(clips[i].words, result.text)
    return score


def table(rows: Sequence[tuple[str, Score]]) -> str:
    head = "| | phrases | word error rate | phrases without an error |\n| --- | --- | --- | --- |"
    return "\n".join((head, *(score.row(name) for name, score in rows)))


def _batches(count: int) -> Iterator[range]:
    return (range(start, min(start + BATCH, count)) for start in range(0, count, BATCH))


def _with_silence(samples: Floats) -> Floats:
    return np.pad(samples, round(EDGE_S * SAMPLE_RATE_HZ))


def _noisy(samples: Floats, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    power = float(np.mean(samples**2))
    level = np.sqrt(power) * 10 ** (-rng.uniform(10, 25) / 20)
    return augment.in_room(samples, rng) + augment.noise(rng, len(samples)) * np.float32(level)

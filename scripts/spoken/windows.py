"""Training rows: a few seconds with phrases, and the tokens that Whisper should predict.

Letters: B rows, M mel bins, T frames, N tokens.

A row is planned first, which gives its length, and rendered later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.audio.mel import HOP
from tallow.audio.sound import SAMPLE_RATE_HZ
from tallow.text.whisper import SECONDS_PER_TIMESTAMP, WhisperTokenizer

from . import augment
from .corpus import Clips
from .phrases import WORDS, Phrase
from .settings import Settings

IGNORED = -100
LATEST_FIRST_S = 1.0  # Whisper's rules allow no later start, so later speech gets this time
N_MELS = 80
SAMPLES_PER_POSITION = 2 * HOP
NOTICED = SAMPLE_RATE_HZ // 10  # minimum audible part of a word for writing its start
TOLERANCE = SAMPLE_RATE_HZ // 50  # maximum missing part of a whole word

# The timestamp tokens are finer, but indistinguishable times would share their probability among several tokens. A
# short text would then look unlikely and be rejected.
TIME_GRID_S = 0.1
ROUNDING = 1e-6

COUNT_SHARES = (0.55, 0.22, 0.08, 0.15)  # fractions of rows with one phrase, two, ...; four rarely fit and are cut off
# Fractions of rows that are silent, start with a long silence, start within a phrase, or follow previous text.
SILENT_SHARE, LATE_SHARE, LATER_START_SHARE, PROMPT_SHARE, FULL_PROMPT_SHARE = 0.05, 0.12, 0.1, 0.3, 0.5

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Plan:
    """Attributes:
    clips: indices of the clips.
    gaps_s: the silence before each clip, and after the last.
    skipped: number of words of the first clip before the window.
    speed: factor on the speed of all clips.
    samples: length of the row.
    seed: for all other random choices.
    """

    clips: tuple[int, ...]
    gaps_s: tuple[float, ...]
    skipped: int
    speed: float
    samples: int
    seed: int


class Placed(NamedTuple):
    """A phrase in a row: its words, the first sample of each, and the end of the last."""

    words: Phrase
    edges: list[int]


class Row(NamedTuple):
    """Attributes:
    mel: (M, T).
    inputs: input tokens of the decoder.
    targets: the next token for each input.
    spoken: (T / 2), the word at each position, as 1 + its index in `WORDS`; 0 is none.
    """

    mel: Floats
    inputs: list[int]
    targets: list[int]
    spoken: Ids


class Batch(NamedTuple):
    """Shapes:  mel (B, M, T), inputs and targets (B, N), spoken (B, T / 2)"""

    mel: Floats
    inputs: Ids
    targets: Ids
    spoken: Ids


class Windows:
    """Batches of rows. A batch depends only on the settings and its index."""

    def __init__(self, clips: Clips, tokenizer: WhisperTokenizer, settings: Settings) -> None:
        self._clips = clips
        self._tokenizer = tokenizer
        self._settings = settings
        self._limit = settings.positions * 2 * HOP
        self._pool: tuple[int, list[list[Plan]]] = (-1, [])

    def batch(self, number: int, *, full: bool) -> Batch:
        """Return batch number `step`.

        Args:  full: rows as in inference: of full length, and more often after previous text
        """
        pool, place = divmod(number, self._settings.pool)
        if self._pool[0] != pool:
            self._pool = (pool, self._plan_pool(pool))
        rows = [self.render(plan, full=full) for plan in self._pool[1][place]]
        frames = 2 * self._settings.positions if full else max(row.mel.shape[1] for row in rows)
        return stack(rows, frames + frames % 2)

    def _plan_pool(self, number: int) -> list[list[Plan]]:
        """Plan batches of rows of similar length, in random order."""
        rng = np.random.default_rng((self._settings.seed, number))
        size = self._settings.batch_size
        plans = sorted((self.plan(rng) for _ in range(size * self._settings.pool)), key=lambda plan: plan.samples)
        batches = [plans[start : start + size] for start in range(0, len(plans), size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def plan(self, rng: Rng) -> Plan:
        seed, speed = int(rng.integers(1 << 31)), float(rng.uniform(0.88, 1.14))
        if rng.random() < SILENT_SHARE:
            return Plan((), (), 0, speed, int(rng.uniform(0.3, 1) * self._limit), seed)
        count = 1 + int(rng.choice(len(COUNT_SHARES), p=COUNT_SHARES))
        clips = tuple(int(i) for i in rng.integers(len(self._clips), size=count))
        words = len(self._clips[clips[0]].words)
        skipped = int(rng.integers(words)) if rng.random() < LATER_START_SHARE else 0
        first_s = 0 if skipped else rng.uniform(0, 3 if rng.random() < LATE_SHARE else 0.5)
        gaps_s = (float(first_s), *map(float, rng.uniform(0.15, 1.2, count - 1)), float(rng.uniform(0, 0.7)))
        length = sum(self._clips.lengths[i] for i in clips) / speed + sum(gaps_s) * SAMPLE_RATE_HZ
        return Plan(clips, gaps_s, skipped, speed, min(int(length), self._limit), seed)

    def render(self, plan: Plan, *, full: bool = True) -> Row:
        rng = np.random.default_rng(plan.seed)
        with_times = rng.random() < 0.5
        share = FULL_PROMPT_SHARE if full else PROMPT_SHARE
        prompt = self._prompt(rng, with_times, full) if rng.random() < share else []
        if not plan.clips:
            return self._silent_row(plan, rng, prompt, with_times)
        samples, placed = self._place(plan, rng)
        body = self._write(placed, plan.samples, with_times)
        tokenizer = self._tokenizer
        start = [tokenizer.sot] if with_times else [tokenizer.sot, tokenizer.no_timestamps]
        text = [*start, *body, tokenizer.eot]
        prompt = prompt[: self._settings.context - len(text)]
        mel = augment.spectrogram(samples, rng, N_MELS)
        targets = [IGNORED] * len(prompt) + text[1:]
        return Row(mel, [*prompt, *text[:-1]], targets, _spoken(placed, mel.shape[1] // 2))

    def _silent_row(self, plan: Plan, rng: Rng, prompt: list[int], with_times: bool) -> Row:
        """Return a silent row, whose text is empty."""
        tokenizer = self._tokenizer
        level = 10 ** (rng.uniform(-70, -10) / 20) * (rng.random() < 0.8)
        mel = augment.spectrogram(augment.noise(rng, plan.samples) * np.float32(level), rng, N_MELS)
        if rng.random() < 0.5:  # other parts of the sound contain speech
            mel = np.maximum(mel, np.float32(rng.uniform(-1.5, 0.2)))
        first = self._time(rng.uniform(0, LATEST_FIRST_S) * SAMPLE_RATE_HZ) if with_times else tokenizer.no_timestamps
        targets = [IGNORED] * len(prompt) + [tokenizer.no_speech, tokenizer.eot]
        return Row(mel, [*prompt, tokenizer.sot, first], targets, _spoken([], mel.shape[1] // 2))

    def _place(self, plan: Plan, rng: Rng) -> tuple[Floats, list[Placed]]:
        """Return the sound and its phrases; the last phrase may extend beyond the end."""
        sound = np.zeros(plan.samples, np.float32)
        placed = []
        at, skipped = 0, plan.skipped
        for i, gap_s in zip(plan.clips, plan.gaps_s, strict=False):
            at += round(gap_s * SAMPLE_RATE_HZ)
            clip = self._clips[i]
            first = 0
            if skipped:  # the grid of times is coarse, so a part of the previous word is audible
                first = max(clip.word_starts[skipped] - int(rng.uniform(0, TIME_GRID_S) * SAMPLE_RATE_HZ), 0)
            samples = _faster(clip.samples[first:], plan.speed) * np.float32(rng.uniform(0.4, 1))
            edges = [*clip.word_starts[skipped:], len(clip.samples)]
            placed.append(Placed(clip.words[skipped:], [at + round((edge - first) / plan.speed) for edge in edges]))
            sound[at : at + len(samples)] = samples[: max(0, plan.samples - at)]
            at += len(samples)
            skipped = 0
        return sound, placed

    def _write(self, placed: list[Placed], end: int, with_times: bool) -> list[int]:
        """Return the text of a row that ends at a given sample.

        If the only phrase is cut off at the end, its complete words are written. Otherwise only its start time is
        written, and the next window starts there, as in Whisper's training.
        """
        text: list[int] = []
        heard: list[int] = []
        for words, edges in placed:
            count = sum(edge <= end + TOLERANCE for edge in edges[1:])
            ids = [token for word in words[:count] for token in self._tokenizer.encode(f" {word}")]
            begin = self._time(edges[0] if text else min(edges[0], LATEST_FIRST_S * SAMPLE_RATE_HZ))
            heard += ids
            if count == len(words):
                text += [begin, *ids, self._time(min(edges[-1], end), later=True)]
            elif ids and not text:
                text += [begin, *ids, *[max(self._time(edges[count]), begin + 1)] * 2]
            elif text and edges[0] < end - NOTICED:
                text.append(begin)
        return text if with_times else heard

    def _prompt(self, rng: Rng, with_times: bool, full: bool) -> list[int]:
        """Return unrelated previous text.  Args: full: with pauses in between"""
        placed = [self._clips[int(i)] for i in rng.integers(len(self._clips), size=rng.integers(1, 4))]
        tokens: list[int] = []
        for clip in placed:
            text = self._tokenizer.encode("".join(f" {word}" for word in clip.words))
            length = len(clip.samples)
            at = int(rng.uniform(0, max(self._limit - length, 1))) if full else 0
            tokens += [self._time(at), *text, self._time(at + length, later=True)] if with_times else text
        return [self._tokenizer.sot_prev, *tokens[-(self._settings.context // 2 - 1) :]]

    def _time(self, sample: float, *, later: bool = False) -> int:
        """Return the timestamp token on the grid at or before the sample, or at or after it."""
        steps = sample / SAMPLE_RATE_HZ / TIME_GRID_S
        index = math.ceil(steps - ROUNDING) if later else math.floor(steps + ROUNDING)
        return self._tokenizer.timestamp_begin + index * round(TIME_GRID_S / SECONDS_PER_TIMESTAMP)


def _spoken(placed: list[Placed], positions: int) -> Ids:
    classes = np.zeros(positions, np.int64)
    for words, edges in placed:
        for word, (start, end) in zip(words, pairwise(edges), strict=True):
            classes[round(start / SAMPLES_PER_POSITION) : round(end / SAMPLES_PER_POSITION)] = 1 + WORDS.index(word)
    return classes


def _faster(samples: Floats, speed: float) -> Floats:
    """Change the speed and the pitch, as of a smaller speaker."""
    places = np.arange(round(len(samples) / speed)) * speed
    return np.interp(places, np.arange(len(samples)), samples).astype(np.float32)


def stack(rows: Sequence[Row], frames: int) -> Batch:
    """Return rows with a number of frames, padded with zeros as after the end of a file."""
    mel = np.zeros((len(rows), N_MELS, frames), np.float32)
    for target, row in zip(mel, rows, strict=True):
        target[:, : row.mel.shape[1]] = row.mel
    return Batch(
        mel,
        _padded([row.inputs for row in rows], 0),
        _padded([row.targets for row in rows], IGNORED),
        _padded([row.spoken for row in rows], 0, frames // 2),
    )


def _padded(rows: Sequence[Sequence[int] | Ids], filler: int, length: int = 1) -> Ids:
    padded = np.full((len(rows), max(length, *map(len, rows))), filler)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded

"""One transcript of what Whisper wrote for the parts of a sound, which overlap: texts joined where they agree, with the
times of passages or words.

A part has ids, and a stride: its length, and how much of it overlaps the parts before and after, in seconds.

Source:  the long-form algorithm for chunks of transformers' `AutomaticSpeechRecognitionPipeline`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tallow.errors import TallowWarning, warn

Span = tuple[float, float]


class Tokens(NamedTuple):
    """The tokens of a passage, and the times of each if they are asked for."""

    ids: list[int]
    times: list[Span]


@dataclass
class Passage:
    """A passage that is being written: the tokens of each part that has some of it."""

    language: str | None = None
    start: float | None = None
    end: float | None = None
    tokens: list[Tokens] = field(default_factory=list)


class Part(NamedTuple):
    """Tokens that the model wrote for a part of the sound.

    Attributes:
        times: of the ends of tokens, in seconds from the beginning of the part; empty if not asked for.
        stride: (length, left, right) in seconds; None for the whole sound.
    """

    ids: list[int]
    times: list[float]
    stride: tuple[float, float, float] | None


class Times:
    """Reads the timestamps of one part, of which a generation over several windows starts again at 0.

    Args:
        begin: the token of the time 0.
        precision: seconds between two timestamps.
        window: seconds of one window.
    """

    def __init__(self, begin: int, precision: float, window: float) -> None:
        self._begin, self._precision, self._window = begin, precision, window
        self._latest = self._before = self._passed = 0.0

    def read(self, ids: Sequence[int], i: int) -> float:
        """Return the time of a timestamp within its part."""
        time = (ids[i] - self._begin) * self._precision
        if time < self._latest:  # another window
            alone = i >= 2 and not (ids[i - 1] >= self._begin and ids[i - 2] >= self._begin)
            if alone:
                self._passed += self._window
            else:
                self._latest = self._before
                self._passed += self._before
        self._before, self._latest = self._latest, time
        return time + self._passed


class Transcript:
    """Joins parts to passages.

    Args:
        begin: the token of the time 0.
        precision: seconds between two timestamps.
        window: seconds of one window of the model.
        languages: the names of languages by the tokens that announce them.
        special: tokens that are not text.
        times: the passages have times.
    """

    def __init__(
        self,
        begin: int,
        precision: float,
        window: float,
        languages: dict[int, str],
        special: frozenset[int],
        times: bool,
    ) -> None:
        self._begin, self._precision, self._window = begin, precision, window
        self._languages, self._special, self._times = languages, special, times
        self.passages: list[Passage] = []
        self._passage = Passage()
        self._offset = 0.0
        self._skips = False
        self._language: str | None = None

    def add(self, part: Part) -> None:
        """Add the next part."""
        first, last = self._borders(part)
        times = Times(self._begin, self._precision, self._window)
        if part.stride is not None:
            self._offset -= part.stride[1]
        current = Tokens([], [])
        for i, token in enumerate(part.ids):
            if token in self._languages:
                current = self._announced(self._languages[token], current)
            elif token in self._special:
                continue
            elif token >= self._begin:
                time = round(times.read(part.ids, i) + self._offset, 2)
                if self._ends(token, time, first, last):
                    self._passage.end = time
                    self._finish(current)
                    current = Tokens([], [])
            else:
                current.ids.append(token)
                if part.times:
                    begin = part.times[i - 1] if i else 0.0
                    current.times.append((round(begin + self._offset, 2), round(part.times[i] + self._offset, 2)))
        if part.stride is not None:
            self._offset += part.stride[0] - part.stride[2]
        if current.ids:
            self._passage.tokens.append(current)
        elif not any(each.ids for each in self._passage.tokens):
            self._passage = Passage(self._language)

    def end(self) -> list[Passage]:
        """Return all passages.  Warns: TallowWarning for a last one without an end"""
        if self._passage.tokens:
            if self._times:
                warn("the model wrote no end of the last passage; the sound may end within a word", TallowWarning)
            self.passages.append(self._passage)
            self._passage = Passage(self._language)
        return self.passages

    def _borders(self, part: Part) -> tuple[float, int | None]:
        """Return the first timestamp after the overlap with the part before, and the first of those at the end that
        belong to the overlap with the part after.
        """
        if part.stride is None:
            return self._begin, None
        length, left, right = part.stride
        first = left / self._precision + self._begin if left else self._begin
        last = None
        if right:
            for token in reversed(part.ids):
                if token >= self._begin:
                    if last is not None and (token - self._begin) * self._precision < length - right:
                        break
                    last = token
        return first, last

    def _announced(self, language: str, current: Tokens) -> Tokens:
        if self._language and language != self._language and not self._times:
            self._finish(current)
            current = Tokens([], [])
        self._passage.language = self._language = language
        return current

    def _ends(self, token: int, time: float, first: float, last: int | None) -> bool:
        """Take a timestamp; return whether it ends the passage."""
        if last and token >= last:  # in the overlap: the next part says it again
            self._skips = True
        elif self._skips or (self._passage.tokens and token < first):  # the other one of a pair
            self._skips = False
        elif self._passage.start is None:
            self._passage.start = time
        else:
            return time != self._passage.start
        return False

    def _finish(self, current: Tokens) -> None:
        self._passage.tokens.append(current)
        self.passages.append(self._passage)
        self._passage = Passage(self._language)


def joined(parts: Sequence[Tokens]) -> Tokens:
    """Return tokens of parts that overlap as one sequence. Where two agree best, the first half of the overlap is the
    earlier part's and the second half the later one's.
    """
    whole, current = Tokens([], []), parts[0]
    for following in parts[1:]:
        left, right = overlap(current, following)
        middle = (left.start + left.stop) // 2
        whole.ids.extend(current.ids[:middle])
        whole.times.extend(current.times[:middle])
        after = (right.start + right.stop) // 2
        current = Tokens(following.ids[after:], following.times[after:])
    return Tokens(whole.ids + current.ids, whole.times + current.times)


def overlap(left: Tokens, right: Tokens) -> tuple[range, range]:
    """Return the places where the end of one sequence agrees best with the beginning of another: by the part of equal
    tokens, and of equals the longest. Without two equal tokens they do not overlap.
    """
    before, after = len(left.ids), len(right.ids)
    found, best = (range(before, before), range(0)), 0.0
    for shift in range(1, before + after):
        here = range(max(0, before - shift), min(before, before + after - shift))
        there = range(max(0, shift - before), min(after, shift))
        equal = sum(_agree(left, i, right, j) for i, j in zip(here, there, strict=True))
        share = equal / shift + shift / 10000
        if equal > 1 and share > best:
            found, best = (here, there), share
    return found


def _agree(left: Tokens, i: int, right: Tokens, j: int) -> bool:
    if left.ids[i] != right.ids[j]:
        return False
    return not left.times or not right.times or left.times[i] <= right.times[j]

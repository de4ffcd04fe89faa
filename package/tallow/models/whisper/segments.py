"""Split the tokens of a window into segments at its timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallow.audio.mel import FRAMES_PER_SECOND
from tallow.models.whisper.decoding import DecodingResult
from tallow.models.whisper.timing import Word
from tallow.text.whisper import SECONDS_PER_TIMESTAMP, WhisperTokenizer

FRAMES_PER_TIMESTAMP = round(FRAMES_PER_SECOND * SECONDS_PER_TIMESTAMP)


@dataclass
class Segment:
    """A part of a transcript, such as a sentence.

    Attributes:
        id: its number in the sound.
        seek: the first frame of its window; a frame is 10 ms.
        start, end: seconds in the sound.
        tokens: ids, with timestamps.
        temperature, avg_logprob, compression_ratio, no_speech_prob: of its window, as in `DecodingResult`.
        words: the words with their times; None without `word_timestamps`.
    """

    id: int
    seek: int
    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float
    words: list[Word] | None = None


@dataclass(frozen=True)
class Place:
    """The position of a window in the sound, in frames and in seconds."""

    seek: int
    size: int
    offset_s: float
    end_s: float
    content_frames: int

    @property
    def content_s(self) -> float:
        """The length of the sound in seconds."""
        return self.content_frames / FRAMES_PER_SECOND


@dataclass(frozen=True)
class Split:
    """The segments of a window, and where the next window starts.

    Attributes:
        seek: the first frame of the next window.
        ended: there is no speech after the last segment.
    """

    segments: list[Segment]
    seek: int
    ended: bool


def split(result: DecodingResult, place: Place, tokenizer: WhisperTokenizer, *, whole: bool = False) -> Split:
    """Split a window's tokens into segments.

    Two timestamps in a row are the end of a segment and the start of the next. The tokens after the last such pair
    belong to the next window, unless a timestamp ends them.

    Args:    whole: make those tokens a segment too, up to the window's end; the next window starts there
    """
    begin, tokens = tokenizer.timestamp_begin, result.tokens
    cuts, ended = cut_places(tokens, begin)
    if not cuts:
        times = [token - begin for token in tokens if token >= begin]
        length_s = times[-1] * SECONDS_PER_TIMESTAMP if times and times[-1] else place.size / FRAMES_PER_SECOND
        only = _segment(tokens, place.offset_s, place.offset_s + length_s, result, place, tokenizer)
        return Split([only], place.seek + place.size, ended)
    segments = []
    for first, last in zip([0, *cuts], cuts, strict=False):
        part = tokens[first:last]
        start, end = (place.offset_s + (token - begin) * SECONDS_PER_TIMESTAMP for token in (part[0], part[-1]))
        segments.append(_segment(part, start, end, result, place, tokenizer))
    if whole:
        if rest := tokens[cuts[-1] + 1 :]:
            start = place.offset_s + (tokens[cuts[-1]] - begin) * SECONDS_PER_TIMESTAMP
            end = place.offset_s + place.size / FRAMES_PER_SECOND
            segments.append(_segment([tokens[cuts[-1]], *rest], min(start, end), end, result, place, tokenizer))
        return Split(segments, place.seek + place.size, ended)
    seek = place.size if ended else (tokens[cuts[-1] - 1] - begin) * FRAMES_PER_TIMESTAMP
    return Split(segments, place.seek + seek, ended)


def cut_places(tokens: Sequence[int], begin: int) -> tuple[list[int], bool]:
    """Return the places in a window's tokens where segments end, and whether there is no speech after the last one.

    Args:    begin: the first token of a time
    """
    is_time = [token >= begin for token in tokens]
    ended = is_time[-2:] == [False, True]
    cuts = [i for i in range(1, len(tokens)) if is_time[i - 1] and is_time[i]]
    return [*cuts, len(tokens)] if cuts and ended else cuts, ended


def _segment(
    tokens: Sequence[int], start: float, end: float, result: DecodingResult, place: Place, tokenizer: WhisperTokenizer
) -> Segment:
    return Segment(
        id=0,
        seek=place.seek,
        start=start,
        end=end,
        text=tokenizer.decode([token for token in tokens if token < tokenizer.eot]),
        tokens=list(tokens),
        temperature=result.temperature,
        avg_logprob=result.avg_logprob,
        compression_ratio=result.compression_ratio,
        no_speech_prob=result.no_speech_prob,
    )

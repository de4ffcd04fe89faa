"""Add words to the segments of a window, and use their times to find hallucinated segments.

Source:  https://github.com/openai/whisper, `timing.py` (add_word_timestamps) and `transcribe.py`
"""

from __future__ import annotations

from collections.abc import Sequence

from tallow.audio.mel import FRAMES_PER_SECOND
from tallow.models.whisper.segments import Place, Segment
from tallow.models.whisper.timing import (
    APPENDED,
    PREPENDED,
    Aligned,
    Word,
    median_duration,
    merge_marks,
    shorten_at_sentence_ends,
)

MARKS = PREPENDED + APPENDED
UNLIKELY = 0.15  # words of a lower probability count as unlikely
SHORT_S, LONG_S = 0.133, 2.0


def add_words(
    segments: Sequence[Segment],
    counts: Sequence[int],
    words: list[Aligned],
    *,
    offset_s: float,
    spoken_until_s: float,
    prepended: str = PREPENDED,
    appended: str = APPENDED,
) -> None:
    """Add words to segments and adjust the segments' times to them, in place.

    Args:
        counts: the number of text tokens in each segment.
        offset_s: the start of the window in the sound.
        spoken_until_s: the end of the last word before the window.
    """
    median_s = median_duration(words)
    if any(word.end != word.start for word in words):
        shorten_at_sentence_ends(words, 2 * median_s)
    merge_marks(words, prepended, appended)
    remaining = iter(words)
    for segment, count in zip(segments, counts, strict=True):
        segment.words = []
        while count > 0 and (word := next(remaining, None)) is not None:
            count -= len(word.tokens)
            if word.word:
                start, end = round(offset_s + word.start, 2), round(offset_s + word.end, 2)
                segment.words.append(Word(word.word, start, end, word.probability))
        if segment.words:
            _shorten_after_pause(segment.words, median_s, spoken_until_s)
            _reconcile(segment, segment.words, median_s)
            spoken_until_s = segment.end


def _shorten_after_pause(words: list[Word], median_s: float, spoken_until_s: float) -> None:
    """Shorten the first one or two words after a pause: alignment adds the pause to them."""
    longest_s = 2 * median_s
    first, second = words[0], words[1] if len(words) > 1 else None
    if first.end - spoken_until_s <= 2 * longest_s:
        return
    too_long = first.end - first.start > longest_s
    if not too_long and (second is None or second.end - first.start <= 2 * longest_s):
        return
    if second is not None and second.end - second.start > longest_s:
        first.end = second.start = max(second.end / 2, second.end - longest_s)
    first.start = max(0, first.end - longest_s)


def _reconcile(segment: Segment, words: list[Word], median_s: float) -> None:
    """Make the segment's times equal to those of its first and last word; the words' times, unless far too long."""
    first, last = words[0], words[-1]
    if segment.start < first.end and segment.start - 0.5 > first.start:
        first.start = max(0, min(first.end - median_s, segment.start))
    else:
        segment.start = first.start
    if segment.end > last.start and segment.end + 0.5 < last.end:
        last.end = max(last.start + median_s, segment.end)
    else:
        segment.end = last.end


def spoken_until(segments: Sequence[Segment]) -> float | None:
    """Return the end of the last word, or else of the last segment."""
    ends = [word.end for segment in segments for word in segment.words or ()]
    return ends[-1] if ends else segments[-1].end if segments else None


def is_anomaly(segment: Segment | None) -> bool:
    """Return whether words are so unlikely, short or long that the segment may be a hallucination."""
    if segment is None or not segment.words:
        return False
    words = [word for word in segment.words if word.word not in MARKS][:8]
    score = sum(map(_anomaly, words))
    return score >= 3 or score + 0.01 >= len(words)


def _anomaly(word: Word) -> float:
    duration = word.end - word.start
    score = 1.0 if word.probability < UNLIKELY else 0.0
    if duration < SHORT_S:
        score += (SHORT_S - duration) * 15
    return score + max(0.0, duration - LONG_S)


def skip_hallucinations(
    segments: list[Segment], place: Place, seek: int, threshold_s: float, spoken_until_s: float, *, ended: bool
) -> tuple[int, bool]:
    """Drop hallucinated segments in silences longer than `threshold_s`.

    Args:
        segments: of the window; a hallucination and the segments after it are removed, in place.
        seek: the start of the next window if there is no hallucination.
        spoken_until_s: the end of the last word before the window.
        ended: there is no speech after the last segment.

    Returns: the first frame of the next window, and whether to keep this window's segments
    """
    last_end = spoken_until(segments)
    if not ended and last_end is not None and last_end > place.offset_s:
        remains = place.end_s - last_end > threshold_s
        seek = round(last_end * FRAMES_PER_SECOND) if remains else place.seek + place.size
    first = next((segment for segment in segments if segment.words), None)
    if first is not None and is_anomaly(first):
        gap = first.start - place.offset_s
        if gap > threshold_s:
            return place.seek + round(gap * FRAMES_PER_SECOND), False
    for i, segment in enumerate(segments):
        if not segment.words:
            continue
        following = next((each for each in segments[i + 1 :] if each.words), None)
        if is_anomaly(segment) and _is_alone(segment, following, place, threshold_s, spoken_until_s):
            seek = round(max(place.offset_s + 1, segment.start) * FRAMES_PER_SECOND)
            if place.content_s - segment.end < threshold_s:
                seek = place.content_frames
            del segments[i:]
            break
        spoken_until_s = segment.end
    return seek, True


def _is_alone(
    segment: Segment, following: Segment | None, place: Place, threshold_s: float, spoken_until_s: float
) -> bool:
    """Return whether a segment has silence, or another hallucination, on both sides."""
    before = (
        segment.start - spoken_until_s > threshold_s
        or segment.start < threshold_s
        or segment.start - place.offset_s < 2.0
    )
    next_start = place.offset_s + place.size / FRAMES_PER_SECOND
    if following is not None and following.words:
        next_start = following.words[0].start
    after = next_start - segment.end > threshold_s or is_anomaly(following) or place.end_s - segment.end < 2.0
    return before and after

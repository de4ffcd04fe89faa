"""The times of words, from the positions of the sound that the decoder's cross-attention attends to at each word.

Letters: N tokens, T positions of the sound, 20 ms each.

Source:  https://github.com/openai/whisper, `timing.py`; dynamic time warping: Sakoe & Chiba 1978,
         doi:10.1109/TASSP.1978.1163055
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.models.causal_lm import host_logits
from tallow.models.whisper.model import Whisper
from tallow.models.whisper.search import log_softmax
from tallow.tape.modes import no_grad
from tallow.text.whisper import SECONDS_PER_TIMESTAMP

Floats = npt.NDArray[np.float32]

MEDIAN_WIDTH = 7
SENTENCE_ENDS = ".。!！?？"
LONGEST_MEDIAN_S = 0.7  # upper limit of the median duration of words
PREPENDED = "\"'“¿([{-"
APPENDED = "\"'.。,，!！?？:：”)]}、"

DIAGONAL, DOWN, RIGHT = range(3)  # the steps of dynamic time warping


@dataclass
class Word:
    """A word with its space and punctuation, and its times in seconds."""

    word: str
    start: float
    end: float
    probability: float


@dataclass
class Aligned:
    """A word with its times, in seconds from the start of the window."""

    word: str
    tokens: list[int]
    start: float
    end: float
    probability: float


def align(
    model: Whisper, audio_SD: Tensor, text: Sequence[int], positions: int, *, language: str | None, task: str
) -> list[Aligned]:
    """Return the words of a text with their times.

    Args:
        audio_SD: the encoded sound.
        text: ids without timestamps.
        positions: the number of positions before the padding at the end of the sound.
    """
    if not text:
        return []
    tokenizer = model.tokenizer
    start = tokenizer.sot_sequence(language, task)
    ids = [*start, tokenizer.no_timestamps, *text, tokenizer.eot]
    scores_HNT, logits_NV = attend(model, audio_SD, ids, model.alignment_heads)
    logprobs = log_softmax(logits_NV[len(start) : len(start) + len(text), : tokenizer.eot])
    probabilities = np.exp(logprobs[np.arange(len(text)), list(text)])
    match_NT = _match(scores_HNT[:, :, :positions])[len(start) : -1]
    tokens_at, places = time_warp(-match_NT.astype(np.float64))
    words, word_tokens = tokenizer.split_to_words([*text, tokenizer.eot], language)
    if len(word_tokens) <= 1:
        return []
    first = np.diff(tokens_at, prepend=-1).astype(bool)  # the first position of each token
    times = places[first] * SECONDS_PER_TIMESTAMP
    ends = np.cumsum([0, *(len(each) for each in word_tokens[:-1])])
    return [
        Aligned(word, own, float(times[i]), float(times[j]), float(np.mean(probabilities[i:j], dtype=np.float64)))
        for word, own, i, j in zip(words, word_tokens, ends[:-1], ends[1:], strict=False)
    ]


def attend(
    model: Whisper, audio_SD: Tensor, tokens: list[int], heads: Sequence[Sequence[int]]
) -> tuple[Floats, Floats]:
    """Return the scores of the cross-attention of some heads (H, N, S), and the logits (N, V).

    Args:    heads: each (layer, head)
    """
    with no_grad():
        heard = model.decoder.listen(audio_SD[None])
        heard.scores = []
        rows = wrap(devices.move(np.array([tokens], np.int64), audio_SD.device))
        logits = host_logits(model.logits(model.decoder(rows, heard)).array)[0]
    scores = [host_logits(heard.scores[layer].array[0, head]) for layer, head in heads]
    return np.stack(scores), logits


def _match(scores_HNT: Floats) -> Floats:
    """Return how much more each token attends to each position than other tokens do, (N, T)."""
    weights = np.exp(log_softmax(scores_HNT))
    deviation = weights.std(axis=-2, keepdims=True)
    weights = (weights - weights.mean(axis=-2, keepdims=True)) / deviation
    return median_filter(weights, MEDIAN_WIDTH).mean(axis=0)


def median_filter(x: Floats, width: int) -> Floats:
    """Return the median of each `width` neighbours along the last axis, which is reflected at the ends."""
    half = width // 2
    if x.shape[-1] <= half:
        return x
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1), axis=-1)


def time_warp(cost_NT: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the cheapest monotonic path from the first token and position to the last.

    Shapes:  (N, T) -> the tokens (P,) and the positions (P,) of the path
    """
    tokens, places = cost_NT.shape
    total = np.full((tokens + 1, places + 1), np.inf, np.float32)
    total[0, 0] = 0
    trace = np.full((tokens + 1, places + 1), -1, np.int8)
    for diagonal in range(2, tokens + places + 1):  # cells depend only on the two diagonals before
        i = np.arange(max(1, diagonal - places), min(tokens, diagonal - 1) + 1)
        j = diagonal - i
        both, down, right = total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]
        is_both = (both < down) & (both < right)
        is_down = ~is_both & (down < both) & (down < right)
        trace[i, j] = np.where(is_both, DIAGONAL, np.where(is_down, DOWN, RIGHT))
        total[i, j] = cost_NT[i - 1, j - 1] + np.where(is_both, both, np.where(is_down, down, right))
    return _trace_back(trace)


def _trace_back(trace: npt.NDArray[np.int8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    trace[0, :], trace[:, 0] = RIGHT, DOWN
    i, j = trace.shape[0] - 1, trace.shape[1] - 1
    path = []
    while i > 0 or j > 0:
        path.append((i - 1, j - 1))
        step = trace[i, j]
        i -= step != RIGHT
        j -= step != DOWN
    tokens, places = np.array(path[::-1], np.int64).T
    return tokens, places


def median_duration(words: Sequence[Aligned]) -> float:
    """Return the median duration in seconds, at most 0.7, of the words whose duration is not 0."""
    durations = [word.end - word.start for word in words if word.end != word.start]
    return min(LONGEST_MEDIAN_S, float(np.median(durations))) if durations else 0.0


def shorten_at_sentence_ends(words: Sequence[Aligned], longest_s: float) -> None:
    """Shorten words next to sentence ends, in place: alignment adds pauses to them."""
    for before, word in pairwise(words):
        if word.end - word.start > longest_s:
            if word.word in SENTENCE_ENDS:
                word.end = word.start + longest_s
            elif before.word in SENTENCE_ENDS:
                word.start = word.end - longest_s


def merge_marks(words: Sequence[Aligned], prepended: str, appended: str) -> None:
    """Merge punctuation into the words it belongs to, in place; its own entries become empty."""
    following = len(words) - 1
    for i in range(len(words) - 2, -1, -1):
        mark, word = words[i], words[following]
        if mark.word.startswith(" ") and mark.word.strip() in prepended:
            _move(mark, word, before=True)
        else:
            following = i
    previous = 0
    for i in range(1, len(words)):
        mark, word = words[i], words[previous]
        if not word.word.endswith(" ") and mark.word in appended:
            _move(mark, word, before=False)
        else:
            previous = i


def _move(mark: Aligned, word: Aligned, *, before: bool) -> None:
    parts = (mark, word) if before else (word, mark)
    word.word = parts[0].word + parts[1].word
    word.tokens = parts[0].tokens + parts[1].tokens
    mark.word, mark.tokens = "", []

"""Transcribe sounds of any length in windows of thirty seconds; each starts where the last one ended.

Source:  Radford et al. 2022, arXiv:2212.04356, sections 3.8 and 4.5; https://github.com/openai/whisper, `transcribe.py`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.audio.mel import FRAMES_PER_SECOND, MelWindows
from tallow.audio.sound import Sound
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.generation.processors import require_count
from tallow.models.whisper.decoding import (
    DecodingOptions,
    DecodingResult,
    batch_key,
    decode_batch,
    detect_language,
    encode,
)
from tallow.models.whisper.model import Whisper
from tallow.models.whisper.segments import Place, Segment, Split, split
from tallow.models.whisper.timing import APPENDED, PREPENDED, align
from tallow.models.whisper.words import add_words, skip_hallucinations, spoken_until
from tallow.tape.modes import no_grad
from tallow.text.languages import language_code

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MAX_CONTEXT_TEMPERATURE = 0.5  # texts of higher temperatures are not context for the next window

Audio = (
    str
    | PathLike[str]
    | bytes
    | Sound
    | MelWindows
    | Tensor
    | npt.NDArray[np.float32]
    | Iterable[npt.NDArray[np.float32]]
)


@dataclass(frozen=True, kw_only=True)
class TranscribeOptions:
    """The options of a transcription.

    Attributes:
        temperature: one temperature, or several to try in turn while a text is repetitive or unlikely.
        compression_ratio_threshold: a text with a higher ratio counts as repetitive; None disables the check.
        logprob_threshold: a text with a lower mean log-probability counts as unlikely; None disables the check.
        no_speech_threshold: a window counts as silent if its no_speech_prob is higher and its text unlikely; None
            disables the check.
        condition_on_previous_text: pass the text of a window to the next one as context.
        initial_prompt: context for the first window, such as names that occur.
        carry_initial_prompt: use it as context for all windows.
        word_timestamps: compute the times of words.
        prepend_punctuations, append_punctuations: punctuation that belongs to the next, or the previous, word.
        clip_timestamps: start, end, start, end, ... in seconds of the parts to transcribe; the last end is optional.
        hallucination_silence_threshold: drop unlikely segments in silences longer than this, in seconds; requires
            word_timestamps.
        batch_size: the number of windows to decode at once; more is faster and takes more memory. With more than 1, a
            window starts where the previous one ends, not at the end of its last segment, so words may be cut there;
            windows share no context except the initial prompt.

    Raises:  ArgumentError for options that exclude each other
    """

    temperature: float | Sequence[float] = TEMPERATURES
    compression_ratio_threshold: float | None = 2.4
    logprob_threshold: float | None = -1.0
    no_speech_threshold: float | None = 0.6
    condition_on_previous_text: bool = True
    initial_prompt: str | None = None
    carry_initial_prompt: bool = False
    word_timestamps: bool = False
    prepend_punctuations: str = PREPENDED
    append_punctuations: str = APPENDED
    clip_timestamps: Sequence[float] = (0.0,)
    hallucination_silence_threshold: float | None = None
    batch_size: int = 1

    def __post_init__(self) -> None:
        require_count("batch_size", self.batch_size, 1)
        if self.hallucination_silence_threshold is not None and not self.word_timestamps:
            raise ArgumentError("hallucination_silence_threshold without word_timestamps", hint="pass both")
        if self.hallucination_silence_threshold is not None and self.batch_size > 1:
            raise ArgumentError(
                "hallucination_silence_threshold with batch_size: it decodes silences again", hint="pass one of them"
            )

    @property
    def in_order(self) -> bool:
        """True if each window depends on the one before it."""
        return self.batch_size == 1


@dataclass(frozen=True)
class Transcript:
    """The transcript of a sound.

    Attributes:
        language: its code.
        duration_s: the length of the sound in seconds.
    """

    text: str
    segments: list[Segment]
    language: str
    duration_s: float


def transcribe(model: Whisper, audio: Audio, **options: Any) -> Transcript:
    """Transcribe a sound.

    Args:
        audio: a file, its bytes, samples at 16 kHz, (N,), or their spectrogram.
        options: of `TranscribeOptions`, and of `DecodingOptions` except the prompt.

    Raises:  ArgumentError for options that exclude each other, or that the model does not support; as `Sound`

    Example:
        transcribe(model, "talk.mp3", language="de", word_timestamps=True).segments
    """
    run = Transcription(model, audio, **options)
    for _ in run:
        pass
    return run.transcript()


class Transcription:
    """A transcription in progress; iteration yields segments as they are decoded.

    Args:  as `transcribe`

    Attributes:
        language: the code of the spoken language.
        duration_s, position_s: the length of the sound, and how much of it is done, in seconds.
        mel: the sound's spectrogram, which returns any window.

    Example:
        run = Transcription(model, "talk.mp3")
        for segment in run:
            print(f"{run.position_s / run.duration_s:4.0%} {segment.text}")
    """

    def __init__(self, model: Whisper, audio: Audio, **options: Any) -> None:
        own = {each.name for each in fields(TranscribeOptions)}
        self.options = TranscribeOptions(**{name: value for name, value in options.items() if name in own})
        self._decoding = {name: value for name, value in options.items() if name not in own}
        _check_names(self._decoding)
        for temperature in (0.0, 1.0):  # raise for invalid options before any work
            DecodingOptions(**_for_temperature(self._decoding, temperature))
        self.model = model
        self.tokenizer = model.tokenizer
        self._window = 2 * model.config.max_source_positions
        self.mel = _spectrogram(audio, model.config.num_mel_bins)
        self.duration_s = self.mel.frames / FRAMES_PER_SECOND
        self.position_s = 0.0
        self._seek = 0
        self._batches = self._places(_clips(self.options.clip_timestamps, self.mel.frames))
        self._next: Sequence[Place] = next(self._batches, ())  # the windows to decode next
        self.language = self._find_language()
        self._decoding["language"] = self.language
        self.segments: list[Segment] = []
        self._spoken_until_s = 0.0
        prompt = self.options.initial_prompt
        self._context = _Context(
            initial=[] if prompt is None else self.tokenizer.encode(" " + prompt.strip()),
            capacity=model.config.max_target_positions // 2 - 1,
            carry=self.options.carry_initial_prompt or not self.options.in_order,
        )

    def __iter__(self) -> Iterator[Segment]:
        while not self.is_done:
            for _, segments in transcribe_next([self]):
                yield from segments

    @property
    def is_done(self) -> bool:
        """True at the end of the sound."""
        return not self._next

    def transcript(self) -> Transcript:
        """Return the transcript so far."""
        text = self.tokenizer.decode([token for segment in self.segments for token in segment.tokens])
        return Transcript(text, self.segments, self.language, self.duration_s)

    def _find_language(self) -> str:
        if self._decoding.get("language") is not None:
            return language_code(self._decoding["language"])
        if not self.tokenizer.is_multilingual:
            return "en"
        (found,) = detect_language(self.model, self.mel.window(0, self._window)[None])
        return max(found, key=lambda code: found[code])

    def _places(self, clips: Iterable[tuple[int, int]]) -> Iterator[Sequence[Place]]:
        """Yield the windows to decode at once; the first ones follow the last one that was decoded."""
        for start, end in clips:
            self._seek = start
            while self._seek < end:
                starts = range(self._seek, end, self._window)[: self.options.batch_size]
                yield [self._place(start, end) for start in starts]

    def _place(self, seek: int, end: int) -> Place:
        size = min(self._window, self.mel.frames - seek, end - seek)
        return Place(seek, size, seek / FRAMES_PER_SECOND, (seek + self._window) / FRAMES_PER_SECOND, self.mel.frames)

    def windows(self) -> list[tuple[Place, npt.NDArray[np.float32]]]:
        """Return the next windows with their spectrograms (M, 2 S), which are zero after the end of the sound."""
        windows = []
        for place in self._next:
            mel = np.zeros((self.model.config.num_mel_bins, self._window), np.float32)
            mel[:, : place.size] = self.mel.window(place.seek, place.size)
            windows.append((place, mel))
        return windows

    def attempts(self) -> list[DecodingOptions]:
        """Return the options to decode the next windows with, in turn until a text is good."""
        temperatures, prompt = self.options.temperature, self._context.prompt()
        return [
            DecodingOptions(**_for_temperature(self._decoding, temperature), prompt=prompt)
            for temperature in ([temperatures] if isinstance(temperatures, int | float) else temperatures)
        ]

    def add(self, place: Place, result: DecodingResult) -> list[Segment]:
        """Append what was heard in the next window; return its segments."""
        seek, segments = self._understand(place, result)
        # By the times of words a window could start where the last one did, and repeat it forever.
        self._seek = seek if seek > place.seek else place.seek + place.size
        self.position_s = min(self._seek, self.mel.frames) / FRAMES_PER_SECOND
        self._next = self._next[1:] or next(self._batches, ())
        return segments

    def _understand(self, place: Place, result: DecodingResult) -> tuple[int, list[Segment]]:
        """Return the first frame of the next window, and the segments of this one."""
        if self._is_silent(result):
            return place.seek + place.size, []
        found = split(result, place, self.tokenizer, whole=not self.options.in_order)
        seek, counts = found.seek, True
        if self.options.word_timestamps:
            seek, counts = self._time_words(found, place, result.audio_features)
        if not counts:
            return seek, []
        for segment in found.segments:
            if segment.start == segment.end or not segment.text.strip():
                segment.text, segment.tokens = "", []
                segment.words = None if segment.words is None else []
            segment.id = len(self.segments)
            self.segments.append(segment)
        self._context.add(found.segments)
        is_context = self.options.condition_on_previous_text and self.options.in_order
        if not is_context or result.temperature > MAX_CONTEXT_TEMPERATURE:
            self._context.forget()
        return seek if self.options.in_order else place.seek + place.size, found.segments

    def is_bad(self, result: DecodingResult) -> bool:
        """Return whether to decode a window again at the next temperature."""
        options = self.options
        ratio, silence = options.compression_ratio_threshold, options.no_speech_threshold
        if self._is_unlikely(result):
            return silence is None or result.no_speech_prob <= silence
        return ratio is not None and result.compression_ratio > ratio

    def _is_unlikely(self, result: DecodingResult) -> bool:
        threshold = self.options.logprob_threshold
        return threshold is not None and result.avg_logprob < threshold

    def _is_silent(self, result: DecodingResult) -> bool:
        silence, threshold = self.options.no_speech_threshold, self.options.logprob_threshold
        likely = threshold is not None and result.avg_logprob > threshold
        return silence is not None and result.no_speech_prob > silence and not likely

    def _time_words(self, found: Split, place: Place, audio_SD: Tensor) -> tuple[int, bool]:
        """Add words with their times to the segments.

        Returns: the first frame of the next window according to them, and whether to keep this window's segments
        """
        options, segments = self.options, found.segments
        texts = [[token for token in segment.tokens if token < self.tokenizer.eot] for segment in segments]
        words = align(
            self.model,
            audio_SD,
            [token for text in texts for token in text],
            place.size // 2,
            language=self.language,
            task=self._decoding.get("task", "transcribe"),
        )
        add_words(
            segments,
            [len(text) for text in texts],
            words,
            offset_s=place.offset_s,
            spoken_until_s=self._spoken_until_s,
            prepended=options.prepend_punctuations,
            appended=options.append_punctuations,
        )
        seek, counts = found.seek, True
        last_end = spoken_until(segments)
        if not found.ended and last_end is not None and last_end > place.offset_s:
            seek = round(last_end * FRAMES_PER_SECOND)
        threshold = options.hallucination_silence_threshold
        if threshold is not None:
            seek, counts = skip_hallucinations(
                segments, place, seek, threshold, self._spoken_until_s, ended=found.ended
            )
        last_end = spoken_until(segments)
        if counts and last_end is not None:
            self._spoken_until_s = last_end
        return seek, counts


def transcribe_next(runs: Sequence[Transcription]) -> Iterator[tuple[Transcription, list[Segment]]]:
    """Decode the next windows of transcriptions with one model, at once; yield for each window its new segments.

    If it raises an error, the transcriptions that were not yielded are as before.
    """
    windows = [(run, place, mel) for run in runs for place, mel in run.windows()]
    if not windows:
        return
    model = windows[0][0].model
    with no_grad():
        audio_ASD = encode(model, np.stack([mel for _, _, mel in windows]))
    results = _decode(model, audio_ASD, [run for run, _, _ in windows])
    for (run, place, _), result in zip(windows, results, strict=True):
        yield run, run.add(place, result)


def _decode(model: Whisper, audio_ASD: Tensor, runs: Sequence[Transcription]) -> list[DecodingResult]:
    """Decode each window, of one of `runs`, at the first temperature that gives a good text, or else at the last."""
    attempts = [iter(run.attempts()) for run in runs]
    results: dict[int, DecodingResult] = {}
    waiting = list(range(len(runs)))
    while waiting:
        tries = [(i, options) for i in waiting if (options := next(attempts[i], None)) is not None]
        for group in _groups(model, runs, tries):
            indices = [i for i, _ in group]
            decoded = decode_batch(model, audio_ASD[indices], [options for _, options in group])
            results.update(zip(indices, decoded, strict=True))
        waiting = [i for i, _ in tries if runs[i].is_bad(results[i])]
    return [results[i] for i in range(len(runs))]


def _groups(
    model: Whisper, runs: Sequence[Transcription], tries: Sequence[tuple[int, DecodingOptions]]
) -> list[list[tuple[int, DecodingOptions]]]:
    """Return the windows that can be decoded at once; those of different runs do not share random numbers of a seed."""
    groups: list[tuple[Any, list[tuple[int, DecodingOptions]]]] = []
    for i, options in tries:
        key = batch_key(model, options), runs[i] if options.seed is not None else None
        for other, group in groups:
            if key == other:
                group.append((i, options))
                break
        else:
            groups.append((key, [(i, options)]))
    return [group for _, group in groups]


@dataclass
class _Context:
    """The previous text that the decoder receives.

    Attributes:
        capacity: the most ids.
        carry: always begin with `initial`.
    """

    initial: list[int]
    capacity: int
    carry: bool
    tokens: list[int] = field(default_factory=list)  # all tokens, beginning with the initial ones
    since: int = 0  # index of the first token that still counts

    def __post_init__(self) -> None:
        self.tokens = list(self.initial)

    def prompt(self) -> list[int]:
        """Return the ids to pass to the decoder."""
        if not self.carry:
            return self.tokens[self.since :]
        available = self.capacity - len(self.initial)
        return self.initial + self.tokens[max(len(self.initial), self.since) :][-available:]

    def add(self, segments: Sequence[Segment]) -> None:
        """Append the tokens of segments."""
        self.tokens += [token for segment in segments for token in segment.tokens]

    def forget(self) -> None:
        """Drop all previous text, except initial text that is carried."""
        self.since = len(self.tokens)


def _spectrogram(audio: Audio, bins: int) -> MelWindows:
    if isinstance(audio, MelWindows):
        return audio
    if isinstance(audio, str | bytes | PathLike):
        return MelWindows(Sound(audio), bins)
    samples = audio.cpu().numpy() if isinstance(audio, Tensor) else audio
    if not isinstance(samples, np.ndarray):
        return MelWindows(samples, bins)
    if samples.ndim != 1:
        raise ArgumentError(f"audio of shape {samples.shape}", hint="pass (N,), one channel at 16 kHz")
    return MelWindows([np.asarray(samples, np.float32)], bins)


def _clips(timestamps: Sequence[float], frames: int) -> list[tuple[int, int]]:
    """Return the parts to transcribe, as (start, end) in frames."""
    points = [round(each * FRAMES_PER_SECOND) for each in timestamps] or [0]
    if len(points) % 2:
        points.append(frames)
    if min(points) < 0:
        raise ArgumentError(f"clip_timestamps={list(timestamps)}", hint="pass seconds from the start of the sound")
    return [(start, min(end, frames)) for start, end in zip(points[::2], points[1::2], strict=True)]


def _check_names(options: dict[str, Any]) -> None:
    names = {each.name for each in fields(DecodingOptions)} - {"prompt", "temperature"}
    if unknown := sorted(options.keys() - names):
        raise ArgumentError(f"transcribe has no option {', '.join(unknown)}", hint="see TranscribeOptions")


def temperatures_from(first: float) -> tuple[float, ...]:
    """Return a temperature, and those to fall back to, which are higher."""
    return first, *(t for t in TEMPERATURES if t > first)


def _for_temperature(options: dict[str, Any], temperature: float) -> dict[str, Any]:
    """Return the options for a temperature: beams only at 0, best_of only above."""
    unused = ("beam_size", "patience") if temperature else ("best_of",)
    return {name: value for name, value in options.items() if name not in unused} | {"temperature": temperature}

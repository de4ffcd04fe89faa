"""`generate` of Whisper: languages, tasks, timestamps, and sounds of any length, under transformers' names.

Letters: A sounds, M mel bins, T frames, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.audio.mel import FRAMES_PER_SECOND
from tallow.core.tensor import Tensor, wrap
from tallow.devices import to_host
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.generation.processors import Logits
from tallow.models.whisper.decoding import encode
from tallow.models.whisper.rules import TimestampRules
from tallow.models.whisper.segments import FRAMES_PER_TIMESTAMP, cut_places
from tallow.models.whisper.steps import Steps
from tallow.nn import functional as F
from tallow.tape.modes import no_grad
from tallow.text.languages import language_code
from tallow.text.whisper import SECONDS_PER_TIMESTAMP
from tallow.transformers.generation.configuration_utils import GenerationConfig
from tallow.transformers.generation.logits_process import (
    RowProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
    ids_of,
)
from tallow.transformers.generation.mixin import GenerationMixin
from tallow.transformers.generation.requests import Request, prepared_config

# Arguments of long sounds that decide whether a text is good enough, and what the next window knows.
NOT_HERE = (
    "prompt_condition_type",
    "compression_ratio_threshold",
    "logprob_threshold",
    "no_speech_threshold",
    "return_token_timestamps",
)


class WhisperTimeStampLogitsProcessor(RowProcessor):
    """Keeps timestamps in order; see `tallow.models.whisper.rules.TimestampRules`.

    Args:
        generate_config: has `no_timestamps_token_id`, `eos_token_id`, and may have `max_initial_timestamp_index`.
        begin_index: how many tokens come before the text.
    """

    def __init__(self, generate_config: Any, begin_index: int | None) -> None:
        if begin_index is None:
            raise ArgumentError("WhisperTimeStampLogitsProcessor: begin_index is None", hint="pass the prompt's length")
        end = generate_config.eos_token_id or generate_config.bos_token_id
        self._end = int(min(end) if isinstance(end, list | tuple) else end)
        self.no_timestamps_token_id = int(generate_config.no_timestamps_token_id)
        self.timestamp_begin = self.no_timestamps_token_id + 1
        self.max_initial_timestamp_index = getattr(generate_config, "max_initial_timestamp_index", None)
        self.set_begin_index(begin_index)

    def set_begin_index(self, begin_index: int) -> None:
        """Set how many tokens come before the text."""
        self.begin_index = begin_index
        self._rules = TimestampRules.of_ids(
            self._end, self.no_timestamps_token_id, begin_index, self.max_initial_timestamp_index
        )

    def change_all(self, texts: Sequence[Sequence[int]], scores_BV: Logits) -> Logits:
        changed_BV = scores_BV.copy()
        self._rules(changed_BV, [list(text) for text in texts])
        return changed_BV


class SpeechSteps:
    """The steps of Whisper's fused decoder for the texts of some sounds.

    Args:  audio_ASD: encoded sounds
    """

    outputs = None
    cache = None

    def __init__(self, model: Any, audio_ASD: Tensor) -> None:
        self._steps = Steps(model, audio_ASD)
        self._count = audio_ASD.shape[0]
        self._has_begun = False

    def read(self, pending: Sequence[Sequence[int]]) -> Array:
        """Append tokens (B, T); return the logits (B, V) of what follows."""
        rows = [list(row) for row in pending]
        if self._has_begun:
            return self._steps.next_logits(rows)
        self._has_begun = True
        return self._steps.start(rows, [-1])[:, 0]

    def select(self, rows: Sequence[int]) -> None:
        """Continue with these rows, in this order; the rows of a sound are adjacent, and all sounds have as many."""
        self._steps.select(rows)


class WhisperGenerationMixin(GenerationMixin):
    """Gives Whisper `generate`."""

    keeps_rows = True  # the rows of each sound stay as many

    def generate(  # type: ignore[override]
        self,
        input_features: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        logits_processor: Any = None,
        *,
        return_timestamps: bool | None = None,
        task: str | None = None,
        language: str | list[str] | None = None,
        is_multilingual: bool | None = None,
        prompt_ids: Tensor | None = None,
        temperature: float | Sequence[float] | None = None,
        return_segments: bool = False,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write down what is said in sounds.

        Args:
            input_features: spectrograms (A, M, T); longer ones than the model reads are read window by window.
            return_timestamps: the tokens of times are among those returned; None means for long sounds.
            task: "transcribe" or "translate"; language: a name or code, one for all sounds or one for each. None means
                as the generation config says, or that the model hears the language.
            is_multilingual: overrides the generation config.
            prompt_ids: tokens that come before the text, as of `processor.get_prompt_ids`.
            temperature: the first of several is used.
            return_segments: return a dictionary with `sequences` and the `segments` of each sound.
            attention_mask: (A, T), 1 for sound: frames after it are not read.
            logits_processor, kwargs: as GenerationMixin.generate

        Returns: ids (A, N), without the tokens before the text
        Raises:  ArgumentError for languages and tasks that the model does not have, and as GenerationMixin.generate
        """
        asked = [name for name in NOT_HERE if kwargs.pop(name, None) not in (None, False)]
        if kwargs.pop("condition_on_prev_tokens", None):
            asked.append("condition_on_prev_tokens")
        if asked:
            hint = "use tallow.models.whisper.transcribe, which has such options"
            raise ArgumentError(f"generate: {', '.join(asked)}", hint=hint)
        features = kwargs.pop("inputs", None) if input_features is None else input_features
        if features is None:
            raise ArgumentError("generate: no input_features", hint="pass processor(audio, ...).input_features")
        config, rest = prepared_config(self, generation_config, kwargs)
        window = 2 * int(self.config.max_source_positions)
        timestamps = _wants_timestamps(config, return_timestamps, features.shape[-1] > window)
        if is_multilingual is not None:
            config.is_multilingual = is_multilingual
        if temperature is not None:
            first = temperature if isinstance(temperature, int | float) else temperature[0]
            config.do_sample, config.temperature = first > 0, float(first) if first else 1.0
        with no_grad():
            starts = self._starts(features[..., :window], config, timestamps, language, task)
            before = [] if prompt_ids is None else prompt_ids.tolist()
            prompts = [[*before, *start] for start in starts]
            options = {**rest, "logits_processor": logits_processor}
            if config.return_dict_in_generate and not timestamps:
                return self._texts_of(features, config, prompts, timestamps, options)
            lengths = _frames(features, attention_mask)
            segments = [
                self._segments_of(features[i : i + 1, :, :length], config, prompts[i], timestamps, options)
                for i, length in enumerate(lengths)
            ]
        rows = [[token for segment in each for token in segment["tokens"].tolist()] for each in segments]
        sequences = _rows(rows, config.pad_token_id)
        is_dict = return_segments or config.return_dict_in_generate
        return {"sequences": sequences, "segments": segments} if is_dict else sequences

    def _open_steps(self, request: Request, copies: int, wanted: Collection[str]) -> tuple[Any, list[list[int]]]:
        is_plain = set(wanted) <= {"scores", "logits"} and not request.others and request.cache is None
        if not is_plain or request.source is None:
            return super()._open_steps(request, copies, wanted)
        return SpeechSteps(self, encode(self, request.source)), request.ids.tolist()  # type: ignore[arg-type]

    def _texts_of(
        self,
        features: Tensor,
        config: GenerationConfig,
        prompts: Sequence[Sequence[int]],
        timestamps: bool,
        options: dict[str, Any],
    ) -> Any:
        """Return what GenerationMixin.generate writes about windows, with the prompts."""
        length, limit = len(prompts[0]), int(self.config.max_target_positions)
        own = deepcopy(config)
        if own.max_new_tokens is None:
            own.max_length = min(own.max_length + min(limit // 2 - 1, length), limit)
        elif own.max_new_tokens + length > limit:
            raise ArgumentError(
                f"generate: {length} tokens before the text and max_new_tokens {own.max_new_tokens}",
                hint=f"ask for fewer: the decoder reads {limit}",
            )
        processors: list[Any] = []
        if own.begin_suppress_tokens is not None:
            processors.append(SuppressTokensAtBeginLogitsProcessor(own.begin_suppress_tokens, length))
        if own.suppress_tokens is not None:
            processors.append(SuppressTokensLogitsProcessor(own.suppress_tokens))
        if timestamps:
            processors.append(WhisperTimeStampLogitsProcessor(own, length))
        own.begin_suppress_tokens = own.suppress_tokens = None
        own.decoder_start_token_id = prompts[0][0]
        further = {**options, "logits_processor": [*processors, *(options["logits_processor"] or ())]}
        ids = wrap(np.array([list(prompt) for prompt in prompts], np.int64))
        settings, self.generation_config = self.generation_config, own  # so that entries that are None stay so
        try:
            return super().generate(features, decoder_input_ids=ids, generation_config=own, **further)
        finally:
            self.generation_config = settings

    def _segments_of(
        self,
        features: Tensor,
        config: GenerationConfig,
        prompt: Sequence[int],
        timestamps: bool,
        options: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Return the segments of a sound (1, M, T), which windows of the model's length read one after another."""
        window, seek, segments = 2 * int(self.config.max_source_positions), 0, []
        while seek < features.shape[-1]:
            part = features[:, :, seek : seek + window]
            size = part.shape[-1]
            written = self._texts_of(F.pad(part, (0, window - size)), config, [prompt], timestamps, options)
            ids = written.sequences if hasattr(written, "sequences") else written
            tokens = _without_end(ids[0, len(prompt) :].tolist(), config)
            found, read = _cut(tokens, _first_time(config, self.config.vocab_size), size)
            segments += [
                {"start": _time(seek, start), "end": _time(seek, end), "tokens": wrap(np.array(part_ids, np.int64))}
                for start, end, part_ids in found
            ]
            seek += read or size
        return segments

    def _starts(
        self, features: Tensor, config: GenerationConfig, timestamps: bool, language: Any, task: str | None
    ) -> list[list[int]]:
        """Return the tokens that each text begins with."""
        batch = features.shape[0]
        entries = vars(config)
        language = entries.get("language") if language is None else language
        task = entries.get("task") if task is None else task
        if entries.get("is_multilingual") is False and (language is not None or task is not None):
            raise ArgumentError("generate: an English-only model has no language and no task", hint="leave them out")
        languages = _languages(entries, language, batch)
        if languages is None and entries.get("lang_to_id"):
            languages = self.detect_language(features, generation_config=config).tolist()
        starts = []
        for i in range(batch):
            start = [int(config.decoder_start_token_id)]
            if languages is not None:
                start.append(languages[i])
            tasks = entries.get("task_to_id") or {}
            if task is not None and task not in tasks:
                raise ArgumentError(f"generate: task={task!r}", hint=f"use one of {', '.join(tasks) or 'none'}")
            if task is not None or (language is not None and tasks):
                start.append(tasks[task or "transcribe"])
            if not timestamps and entries.get("no_timestamps_token_id") is not None:
                start.append(config.no_timestamps_token_id)
            starts.append(start)
        return starts

    def detect_language(
        self, input_features: Tensor, encoder_outputs: Any = None, generation_config: GenerationConfig | None = None
    ) -> Tensor:
        """Return the token of the language of each sound, (A,).

        Args:    encoder_outputs: of the sounds, in place of `input_features`
        """
        config = generation_config or self.generation_config
        audio = encode(self, input_features if encoder_outputs is None else encoder_outputs[0])  # type: ignore[arg-type]
        start = int(config.decoder_start_token_id)
        logits_AV = Steps(self, audio).start([[start]] * audio.shape[0], [0])[:, 0]  # type: ignore[arg-type]
        tokens = np.array(list(config.lang_to_id.values()), np.int64)
        return wrap(tokens[logits_AV[:, tokens].argmax(-1)])


def _wants_timestamps(config: GenerationConfig, asked: bool | None, is_long: bool) -> bool:
    wanted = vars(config).get("return_timestamps") if asked is None else asked
    if is_long and wanted is False:
        raise ArgumentError("generate: return_timestamps=False for a long sound", hint="windows end at timestamps")
    if (wanted or is_long) and vars(config).get("no_timestamps_token_id") is None:
        raise ArgumentError("generate: return_timestamps without no_timestamps_token_id", hint="set it in the config")
    return bool(wanted or is_long)


def _languages(entries: dict[str, Any], language: Any, batch: int) -> list[int] | None:
    """Return the token of the language of each sound."""
    if language is None:
        return None
    names = [language] * batch if isinstance(language, str) else list(language)
    if len(names) != batch:
        raise ArgumentError(f"generate: {len(names)} languages for {batch} sounds", hint="pass one for each")
    known = entries.get("lang_to_id") or {}
    tokens = []
    for name in names:
        token = name if name in known else f"<|{language_code(name)}|>"
        if token not in known:
            raise ArgumentError(f"generate: the model does not know {name!r}", hint="see generation_config.lang_to_id")
        tokens.append(int(known[token]))
    return tokens


def _frames(features: Tensor, mask: Tensor | None) -> list[int]:
    if mask is None or features.shape[0] == 1:
        return [features.shape[-1]] * features.shape[0]
    return [int(length) for length in to_host(mask.array).sum(1)]


def _first_time(config: GenerationConfig, vocab_size: int) -> int:
    last = vars(config).get("no_timestamps_token_id")
    return vocab_size if last is None else int(last) + 1


def _without_end(tokens: list[int], config: GenerationConfig) -> list[int]:
    """Return tokens without those that end a text, and the padding after it."""
    ends = {*ids_of([] if config.eos_token_id is None else config.eos_token_id), config.pad_token_id}
    while tokens and tokens[-1] in ends:
        tokens = tokens[:-1]
    return tokens


def _cut(tokens: list[int], begin: int, size: int) -> tuple[list[tuple[float, float, list[int]]], int]:
    """Return the segments of a window, each with its start and end in seconds, and how many frames were read."""
    places, has_ended = cut_places(tokens, begin)
    if not places:
        times = [token - begin for token in tokens if token >= begin]
        seconds = times[-1] * SECONDS_PER_TIMESTAMP if times and times[-1] else size / FRAMES_PER_SECOND
        return [(0.0, seconds, tokens)], size
    last = places[-1]
    ends = [*places[:-1], last if has_ended else last + 1]
    found = []
    for first, end, cut in zip([0, *places], ends, places, strict=False):
        part = tokens[first:end]
        found.append(
            ((part[0] - begin) * SECONDS_PER_TIMESTAMP, (tokens[cut - 1] - begin) * SECONDS_PER_TIMESTAMP, part)
        )
    return found, size if has_ended else (tokens[last - 1] - begin) * FRAMES_PER_TIMESTAMP


def _time(seek: int, seconds: float) -> Tensor:
    return wrap(np.array(seek / FRAMES_PER_SECOND + seconds, np.float64))


def _rows(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    filled: npt.NDArray[np.int64] = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for row, tokens in zip(filled, rows, strict=True):
        row[: len(tokens)] = tokens
    return wrap(filled)

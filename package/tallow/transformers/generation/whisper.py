"""`generate` of Whisper: languages, tasks, timestamps, and sounds of any length, under transformers' names.

Letters: A sounds, M mel bins, T frames, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from tallow.audio.mel import FRAMES_PER_SECOND
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.generation.processors import Logits
from tallow.models.whisper.decoding import encode
from tallow.models.whisper.rules import TimestampRules
from tallow.models.whisper.steps import Steps
from tallow.nn import functional as F
from tallow.tape.modes import no_grad
from tallow.text.languages import language_code
from tallow.transformers.generation.configuration_utils import GenerationConfig
from tallow.transformers.generation.logits_process import (
    RowProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)
from tallow.transformers.generation.mixin import GenerationMixin
from tallow.transformers.generation.requests import Request, prepared_config
from tallow.transformers.generation.whisper_quality import (
    FIRST,
    LOW,
    OPTIONS,
    mean_logprob,
    no_speech_probability,
    quality_of,
    text_before,
    token_times,
)
from tallow.transformers.generation.whisper_windows import (
    Sound,
    Text,
    cut,
    first_row,
    first_time,
    result_of,
    seconds_at,
    set_temperature,
    sounds_of,
    without_end,
)
from tallow.transformers.modeling_outputs import BaseModelOutput


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
        return_token_timestamps: bool | None = None,
        compression_ratio_threshold: float | None = None,
        logprob_threshold: float | None = None,
        no_speech_threshold: float | None = None,
        condition_on_prev_tokens: bool | None = None,
        prompt_condition_type: str | None = None,
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
            temperature: one, or several that are tried until a text is good enough.
            return_segments: return a dictionary with `sequences` and the `segments` of each sound.
            return_token_timestamps: return a dictionary with `token_timestamps` too: when each token ends, in seconds.
            compression_ratio_threshold, logprob_threshold, no_speech_threshold, condition_on_prev_tokens,
                prompt_condition_type: of `whisper_quality.Quality`; None means as the generation config says.
            attention_mask: (A, T), 1 for sound: frames after it are not read.
            logits_processor, kwargs: as GenerationMixin.generate; num_return_sequences repeats each sound

        Returns: ids (A, N), without the tokens before the text
        Raises:  ArgumentError for languages and tasks that the model does not have, and as GenerationMixin.generate
        """
        features = kwargs.pop("inputs", None) if input_features is None else input_features
        if features is None:
            raise ArgumentError("generate: no input_features", hint="pass processor(audio, ...).input_features")
        config, rest = prepared_config(self, generation_config, kwargs)
        window = 2 * int(self.config.max_source_positions)
        timestamps = _wants_timestamps(config, return_timestamps, features.shape[-1] > window)
        if is_multilingual is not None:
            config.is_multilingual = is_multilingual
        asked = (compression_ratio_threshold, logprob_threshold, no_speech_threshold, condition_on_prev_tokens)
        quality = quality_of(config, temperature, dict(zip(OPTIONS, asked, strict=True)), prompt_condition_type)
        if temperature is not None:
            set_temperature(config, quality.temperatures[0])
        with no_grad():
            starts = self._starts(features[..., :window], config, timestamps, language, task)
            if (count := config.num_return_sequences or 1) > 1:
                config.num_return_sequences = 1
                starts = [start for start in starts for _ in range(count)]
                features = features.repeat_interleave(count, 0)
                attention_mask = None if attention_mask is None else attention_mask.repeat_interleave(count, 0)
            before = [] if prompt_ids is None else prompt_ids.tolist()
            options = {**rest, "logits_processor": logits_processor}
            is_dict = bool(config.return_dict_in_generate)
            if is_dict and not timestamps and not return_token_timestamps:
                return self._texts_of(features, config, [[*before, *start] for start in starts], timestamps, options)
            if quality.needs_scores:
                config.return_dict_in_generate = config.output_scores = True
            sounds = sounds_of(features, attention_mask, starts, before, quality, bool(return_token_timestamps))
            segments = [self._segments_of(each, config, timestamps, options) for each in sounds]
        result = result_of(segments, config.pad_token_id, bool(return_token_timestamps), return_segments or is_dict)
        return result if len(result) > 1 else result["sequences"]

    def _open_steps(self, request: Request, copies: int, wanted: Collection[str]) -> tuple[Any, list[list[int]]]:
        is_plain = set(wanted) <= {"scores", "logits"} and not request.others and request.cache is None
        if not is_plain or request.source is None:
            if request.source is not None and request.source.shape[-1] == self.config.d_model:
                others = {**request.others, "encoder_outputs": BaseModelOutput(last_hidden_state=request.source)}
                request = replace(request, source=None, others=others)  # it is encoded already
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
        self, sound: Sound, config: GenerationConfig, timestamps: bool, options: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the segments of a sound, which windows of the model's length read one after another."""
        window, seek = 2 * int(self.config.max_source_positions), 0
        segments: list[dict[str, Any]] = []
        reads_on = bool(sound.quality.condition_on_prev_tokens)
        while seek < sound.features.shape[-1]:
            part = sound.features[:, :, seek : seek + window]
            size = part.shape[-1]
            prompt = self._prompt(sound, config, segments if reads_on else None)
            text = self._best(F.pad(part, (0, window - size)), sound, config, prompt, timestamps, options)
            reads_on = bool(sound.quality.condition_on_prev_tokens) and text.temperature < LOW
            if text.is_silent:
                seek += size
                continue
            frames = None if sound.frames is None else sound.frames - seek
            times = token_times(self, text.audio[0], prompt, text.tokens, frames) if sound.has_times else None
            found, read = cut(without_end(text.tokens, config), first_time(config, self.config.vocab_size), size)
            place = len(prompt)
            for start, end, ids in found:
                segment: dict[str, Any] = {"start": seconds_at(seek, start), "end": seconds_at(seek, end)}
                segment |= {"tokens": wrap(np.array(ids, np.int64)), "idxs": (place, place + len(ids))}
                segment["result"] = first_row(text.written, times)
                if times is not None:
                    own = times[place : place + len(ids)] + np.float32(seek / FRAMES_PER_SECOND)
                    segment["token_timestamps"] = wrap(own)
                segments.append(segment)
                place += len(ids)
            seek += read or size
        return segments

    def _prompt(self, sound: Sound, config: GenerationConfig, known: Sequence[Any] | None) -> list[int]:
        """Return the tokens before the text of a window.

        Args:    known: the segments before it, which it reads; None if it does not
        """
        is_first = sound.quality.prompt_condition_type == FIRST
        previous = vars(config).get("prev_sot_token_id")
        if previous is None and config.suppress_tokens is not None and len(config.suppress_tokens) > 1:
            previous = config.suppress_tokens[-2]
        mark = [] if previous is None else [int(previous)]
        asked: list[Any] = []
        if sound.before and is_first:
            asked = [{"tokens": wrap(np.array(sound.before[int(sound.before[:1] == mark) :], np.int64))}]
        if known is None or not (*asked, *known):
            return [*sound.before, *sound.start]
        first = sound.before if sound.before and not is_first else mark
        most = int(self.config.max_target_positions) // 2 - 1
        begin = first_time(config, self.config.vocab_size)
        return [*text_before([*asked, *known], first, most, begin), *sound.start]

    def _best(
        self,
        features: Tensor,
        sound: Sound,
        config: GenerationConfig,
        prompt: Sequence[int],
        timestamps: bool,
        options: dict[str, Any],
    ) -> Text:
        """Return the first text of a window that is good enough, or that of the last temperature."""
        quality = sound.quality
        several = len(quality.temperatures) > 1 or quality.no_speech_threshold is not None or sound.has_times
        audio = encode(self, features) if several else features  # type: ignore[arg-type]
        silence = 0.0
        if quality.no_speech_threshold is not None:
            place = len(prompt) - len(sound.start)
            silence = no_speech_probability(self, audio, prompt, place, int(config.no_timestamps_token_id) - 1)
        for temperature in quality.temperatures:
            own = deepcopy(config)
            if len(quality.temperatures) > 1:
                set_temperature(own, temperature)
            written = self._texts_of(audio, own, [prompt], timestamps, options)
            ids = written.sequences if hasattr(written, "sequences") else written
            tokens = ids[0, len(prompt) :].tolist()
            logprob = mean_logprob(written, tokens, temperature) if quality.needs_scores else None
            is_silent = quality.is_silent(logprob, silence)
            if is_silent or quality.is_good(tokens, logprob, int(self.config.vocab_size)):
                break
        return Text(written, tokens, temperature, is_silent, audio)

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

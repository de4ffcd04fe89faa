"""Transcribe thirty seconds of sound with Whisper's decoder, a token at a time, under rules.

Letters: A sounds, B rows, V vocabulary. The rows of one sound, its beams or samples, are adjacent.

Source:  Radford et al. 2022, arXiv:2212.04356, section 4.5; https://github.com/openai/whisper, `decoding.py`
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tallow.core.apply import apply
from tallow.core.creation import as_tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.generation.processors import require_count, require_number
from tallow.models.whisper.model import Whisper
from tallow.models.whisper.rules import NON_SPEECH, Rule, SuppressBlank, SuppressTokens, TimestampRules
from tallow.models.whisper.search import BeamSearch, Choice, Floats, Rows, Sampling, log_softmax
from tallow.models.whisper.steps import Steps
from tallow.ops.joining import cat
from tallow.tape.modes import no_grad


@dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """The options that choose a text.

    Attributes:
        task: "transcribe", or "translate" to English.
        language: a code or an English name; None detects it.
        temperature: 0 takes the likeliest token, more draws at random.
        sample_len: the most tokens of a text; None means half of the decoder's context.
        best_of: the number of texts to draw, of which the likeliest is taken; only with a temperature.
        beam_size: the number of beams; only without a temperature.
        patience: the search stops when patience x beam_size texts have ended (Kasai et al. 2022, arXiv:2204.05424);
            None means 1.
        length_penalty: texts are compared by log-probability / ((5 + length) / 6)^penalty (Wu et al. 2016,
            arXiv:1609.08144, eq. 14), from 0 to 1; None means log-probability / length.
        prompt: the preceding text, as text or ids.
        prefix: the beginning of the text, as text or ids.
        suppress_tokens: ids that are never chosen; -1 stands for all tokens that are not speech. None or an empty list
            allows special tokens too.
        suppress_blank: do not allow an empty text.
        without_timestamps: do not generate timestamps.
        max_initial_timestamp: the latest start of the first words, in seconds; None means any time.
        seed: of the random draws; None means a different seed each time.

    Raises:  ArgumentError for options that exclude each other
    """

    task: str = "transcribe"
    language: str | None = None
    temperature: float = 0.0
    sample_len: int | None = None
    best_of: int | None = None
    beam_size: int | None = None
    patience: float | None = None
    length_penalty: float | None = None
    prompt: str | Sequence[int] | None = None
    prefix: str | Sequence[int] | None = None
    suppress_tokens: Iterable[int] | None = (NON_SPEECH,)
    suppress_blank: bool = True
    without_timestamps: bool = False
    max_initial_timestamp: float | None = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        if self.beam_size is not None and (self.best_of is not None or self.temperature):
            raise ArgumentError("beam_size with best_of or a temperature", hint="use either beams or sampling")
        if self.best_of is not None and not self.temperature:
            raise ArgumentError("best_of without a temperature", hint="all texts would be the same")
        if self.patience is not None and (self.beam_size is None or round(self.beam_size * self.patience) < 1):
            raise ArgumentError(f"patience={self.patience} with beam_size={self.beam_size}", hint="pass beam_size, too")

    def _check_numbers(self) -> None:
        require_number("temperature", self.temperature, "0 or more", lambda t: 0 <= t < math.inf)
        for name, least in (("sample_len", 1), ("best_of", 1), ("beam_size", 1), ("seed", 0)):
            if (count := getattr(self, name)) is not None:
                require_count(name, count, least, f"an integer, {least} or more, or None")
        if self.patience is not None:
            require_number("patience", self.patience, "more than 0, or None", lambda p: 0 < p < math.inf)
        if self.length_penalty is not None:
            require_number(
                "length_penalty", self.length_penalty, "a number from 0 to 1, or None", lambda p: 0 <= p <= 1
            )
        if (latest := self.max_initial_timestamp) is not None:
            require_number("max_initial_timestamp", latest, "0 or more, or None", lambda t: 0 <= t < math.inf)

    @property
    def group(self) -> int:
        """The number of texts decoded at once for one sound."""
        return self.beam_size or self.best_of or 1


@dataclass(frozen=True)
class DecodingResult:
    """A text, and how certain the model is of it.

    Attributes:
        audio_features: the encoded sound, (S, D).
        language: its code.
        tokens: ids of the text, with timestamps, without the tokens before and after it.
        avg_logprob: mean natural log-probability of the tokens.
        no_speech_prob: the probability that the sound holds no speech.
        compression_ratio: the text's bytes divided by its size compressed with zlib; high for repetitive text.
    """

    audio_features: Tensor
    language: str
    tokens: list[int]
    text: str
    avg_logprob: float
    no_speech_prob: float
    temperature: float
    compression_ratio: float


def decode(
    model: Whisper, mel: Tensor | Floats, options: DecodingOptions | None = None, **changes: Any
) -> DecodingResult | list[DecodingResult]:
    """Decode the text of one spectrogram, or the texts of several at once.

    Args:
        mel: spectrograms, or encoded sounds.
        options, changes: DecodingOptions, and options that override them.

    Shapes:  mel (M, 2 S) or (S, D) -> one; (A, M, 2 S) or (A, S, D) -> a list
    Raises:  ArgumentError for options that exclude each other, or that the model does not support; ShapeError
    """
    options = replace(options or DecodingOptions(), **changes)
    single = mel.ndim == 2
    with no_grad():
        audio_ASD = encode(model, mel[None] if single else mel)
    results = decode_batch(model, audio_ASD, [options] * audio_ASD.shape[0])
    return results[0] if single else results


def decode_batch(model: Whisper, audio_ASD: Tensor, options: Sequence[DecodingOptions]) -> list[DecodingResult]:
    """Decode the texts of encoded sounds, all at once.

    Args:    options: of each sound; they differ in the task, the language and the prompt only, see `batch_key`
    """
    with no_grad():
        return _Decoding(model, options, audio_ASD).run()


def batch_key(model: Whisper, options: DecodingOptions) -> tuple[int, DecodingOptions]:
    """Return a value that is equal for options which `decode_batch` can take together; the prompt must be ids."""
    prompt = min(len(options.prompt or ()), _most_context(model))
    return prompt, replace(options, task="transcribe", language=None, prompt=None)


def _most_context(model: Whisper) -> int:
    """Return how many ids of the preceding text the decoder reads."""
    return model.config.max_target_positions // 2 - 1


def encode(model: Whisper, mel: Tensor | Floats) -> Tensor:
    """Encode spectrograms to sounds (A, S, D); return encoded sounds unchanged."""
    sounds = as_tensor(mel, device=model.decoder.embed_positions.weight.device)
    if tuple(sounds.shape[-2:]) == (model.config.max_source_positions, model.config.d_model):
        return sounds
    if sounds.device.type == "cpu":  # 12 % faster one by one: what a layer returns for one sound fits into the cache
        return apply(cat, [model.encoder(sound[None]) for sound in sounds], 0)
    return model.encoder(sounds)


def detect_language(model: Whisper, mel: Tensor | Floats) -> list[dict[str, float]]:
    """Return the probability of each language, by code, for each sound.

    Shapes:  mel (A, M, 2 S) or (A, S, D)
    Raises:  ArgumentError for an English-only model
    """
    tokenizer = model.tokenizer
    if not tokenizer.is_multilingual:
        raise ArgumentError("an English-only model cannot detect languages", hint='pass language="en"')
    with no_grad():
        audio_ASD = encode(model, mel)
        steps = Steps(model, audio_ASD)
        logits_AV = steps.start([[tokenizer.sot]] * audio_ASD.shape[0], [0])[:, 0]
    probabilities = np.exp(log_softmax(logits_AV[:, tokenizer.language_tokens]))
    return [dict(zip(tokenizer.languages, map(float, row), strict=True)) for row in probabilities]


def compression_ratio(text: str) -> float:
    """Return the text's size in bytes divided by its size compressed with zlib."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


class _Decoding:
    """One call of `decode`."""

    def __init__(self, model: Whisper, each: Sequence[DecodingOptions], audio_ASD: Tensor) -> None:
        self.tokenizer = model.tokenizer
        self.each = each
        self.options = options = each[0]
        self.audio_ASD = audio_ASD
        self.languages = self._languages(model)
        self.limit = model.config.max_target_positions
        self.most_context = _most_context(model)
        self.sample_len = options.sample_len or self.limit // 2
        self.begin, self.prompts = self._initial_tokens()
        self.steps = Steps(model, audio_ASD)
        self.rules = self._rules()
        self.choice: Choice = (
            BeamSearch(options.beam_size, options.patience, self.tokenizer.eot, self.steps.select)
            if options.beam_size is not None
            else Sampling(options.temperature, self.tokenizer.eot, np.random.default_rng(options.seed))
        )

    def _languages(self, model: Whisper) -> list[str]:
        named = [options.language for options in self.each]
        if None not in named:
            return [name for name in named if name is not None]
        if not self.tokenizer.is_multilingual:
            return ["en"] * len(named)
        return [max(each, key=lambda code: each[code]) for each in detect_language(model, self.audio_ASD)]

    def _initial_tokens(self) -> tuple[int, Rows]:
        """Return how many tokens come before the text, and those tokens for each sound."""
        tokenizer, options = self.tokenizer, self.options
        contexts = [self._ids(each.prompt) for each in self.each]
        befores = [[tokenizer.sot_prev, *ids[-self.most_context :]] if ids else [] for ids in contexts]
        after = self._ids(options.prefix)
        if self.limit // 2 > self.sample_len:
            after = after[-(self.limit // 2 - self.sample_len) :]
        if options.without_timestamps:
            after = [tokenizer.no_timestamps, *after]
        starts = [
            tokenizer.sot_sequence(*each)
            for each in zip(self.languages, (each.task for each in self.each), strict=True)
        ]
        self.sot_at = len(befores[0])
        rows = [[*before, *start, *after] for before, start in zip(befores, starts, strict=True)]
        if len(rows[0]) >= self.limit:
            raise ArgumentError(
                f"prompt and prefix are {len(rows[0])} tokens; the model reads {self.limit}", hint="shorten them"
            )
        return len(rows[0]), rows

    def _ids(self, text: str | Sequence[int] | None) -> list[int]:
        return self.tokenizer.encode(" " + text.strip()) if isinstance(text, str) else list(text or ())

    def _rules(self) -> list[Rule]:
        tokenizer, options = self.tokenizer, self.options
        rules: list[Rule] = []
        if options.suppress_blank:
            rules.append(SuppressBlank(tokenizer, self.begin))
        if suppressed := list(options.suppress_tokens or ()):
            rules.append(SuppressTokens(tokenizer, suppressed))
        if not options.without_timestamps:
            rules.append(TimestampRules(tokenizer, self.begin, options.max_initial_timestamp))
        return rules

    def run(self) -> list[DecodingResult]:
        """Decode all texts."""
        group = self.options.group
        sot_logits_AV, logits_AV = self.steps.start(self.prompts, [self.sot_at, -1]).swapaxes(0, 1)
        silence = np.exp(log_softmax(sot_logits_AV))[:, self.tokenizer.no_speech]
        self.steps.fan_out(group)
        rows = [list(row) for row in self.prompts for _ in range(group)]
        logits_BV = np.repeat(logits_AV, group, axis=0)
        sums = np.zeros(len(rows), np.float32)
        going = list(range(len(rows)))  # the rows that the decoder continues
        for step in range(self.sample_len):
            current, own_sums = [rows[i] for i in going], sums[going]
            if step:
                logits_BV = self.steps.next_logits(current)
            for rule in self.rules:
                rule(logits_BV, current)
            current, completed = self.choice.update(current, logits_BV, own_sums)
            sums[going] = own_sums
            for i, row in zip(going, current, strict=True):
                rows[i] = row
            if completed or len(current[0]) > self.limit:
                break
            going = self._without_ended(rows, going)
        finals = self.choice.finish(rows, sums, group)
        return [self._result(i, candidates, float(silence[i])) for i, candidates in enumerate(finals)]

    def _without_ended(self, rows: Rows, going: list[int]) -> list[int]:
        """Return the rows to continue: once the texts of half of the sounds have ended, those of the other half."""
        group = self.options.group
        sounds = [going[i : i + group] for i in range(0, len(going), group)]
        left = [i for i, own in enumerate(sounds) if not all(self.choice.has_ended(rows[row]) for row in own)]
        if 2 * len(left) > len(sounds):
            return going
        self.steps.keep(left, group)
        return [row for i in left for row in sounds[i]]

    def _result(self, sound: int, candidates: list[tuple[list[int], float]], silence: float) -> DecodingResult:
        """Return the best candidate.  Args: candidates: rows, with the tokens before the text, and log-probabilities"""
        texts = [(self._text(row), logprob) for row, logprob in candidates]
        tokens, logprob = max(texts, key=lambda text: text[1] / self._penalty(len(text[0])))
        text = self.tokenizer.decode(tokens).strip()
        return DecodingResult(
            audio_features=self.audio_ASD[sound],
            language=self.languages[sound],
            tokens=tokens,
            text=text,
            avg_logprob=logprob / (len(tokens) + 1),
            no_speech_prob=silence,
            temperature=self.options.temperature,
            compression_ratio=compression_ratio(text),
        )

    def _text(self, row: list[int]) -> list[int]:
        tokens = row[self.begin :]
        return tokens[: tokens.index(self.tokenizer.eot)] if self.tokenizer.eot in tokens else tokens

    def _penalty(self, length: int) -> float:
        penalty = self.options.length_penalty
        return max(length, 1) if penalty is None else ((5 + length) / 6) ** penalty

"""The judgement of a text that Whisper's `generate` wrote: its quality, and the times of its tokens.

Letters: H heads, N tokens, S positions of the sound, V vocabulary.

Source:  Radford et al. 2022, arXiv:2212.04356, section 4.5; results as of transformers' `WhisperGenerationMixin`
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor
from tallow.devices import to_host
from tallow.errors import ArgumentError
from tallow.models.whisper.search import log_softmax
from tallow.models.whisper.steps import Steps
from tallow.models.whisper.timing import attend, median_filter, time_warp
from tallow.text.whisper import SECONDS_PER_TIMESTAMP

LOW = 0.5  # a temperature from which the next window does not read the text before
FIRST, ALL = "first-segment", "all-segments"  # the windows that read the prompt
THRESHOLDS = ("compression_ratio_threshold", "logprob_threshold", "no_speech_threshold")
OPTIONS = (*THRESHOLDS, "condition_on_prev_tokens")


@dataclass(frozen=True, kw_only=True)
class Quality:
    """The options about texts that are not good enough.

    Attributes:
        temperatures: tried one after another, until a text is good enough; 0 takes the likeliest tokens.
        compression_ratio_threshold: a text that can be compressed more repeats itself.
        logprob_threshold: a text with a lower mean log-probability is not certain enough.
        no_speech_threshold: a window with a higher probability of no speech, and a lower log-probability, is skipped.
        condition_on_prev_tokens: a window reads the text of those before.
        prompt_condition_type: "first-segment" or "all-segments", the windows that read `prompt_ids`.

    Raises:  ArgumentError for options that need others, and for temperatures that are none
    """

    temperatures: tuple[float, ...] = (0.0,)
    compression_ratio_threshold: float | None = None
    logprob_threshold: float | None = None
    no_speech_threshold: float | None = None
    condition_on_prev_tokens: bool | None = None
    prompt_condition_type: str = FIRST

    def __post_init__(self) -> None:
        if not self.temperatures or any(not isinstance(each, int | float) or each < 0 for each in self.temperatures):
            raise ArgumentError(f"generate: temperature={self.temperatures!r:.80}", hint="pass numbers from 0 up")
        if self.no_speech_threshold is not None and self.logprob_threshold is None:
            raise ArgumentError("generate: no_speech_threshold without logprob_threshold", hint="pass both")
        if self.prompt_condition_type not in (FIRST, ALL):
            raise ArgumentError(
                f"generate: prompt_condition_type={self.prompt_condition_type!r:.80}", hint=f"use {FIRST!r} or {ALL!r}"
            )
        if self.prompt_condition_type == ALL and not self.condition_on_prev_tokens:
            raise ArgumentError(
                f"generate: prompt_condition_type={ALL!r} without condition_on_prev_tokens", hint="pass both"
            )

    @property
    def needs_scores(self) -> bool:
        """True if the scores of tokens decide."""
        return self.logprob_threshold is not None

    def is_good(self, tokens: Sequence[int], logprob: float | None, vocab_size: int) -> bool:
        """Return whether a text is good enough.

        Args:
            tokens: with the one that ends it.
            logprob: the mean log-probability; needed with a `logprob_threshold`.
        """
        limit = self.compression_ratio_threshold
        if limit is not None and compression_ratio(tokens, vocab_size) > limit:
            return False
        return self.logprob_threshold is None or logprob is None or not logprob < self.logprob_threshold

    def is_silent(self, logprob: float | None, no_speech: float) -> bool:
        """Return whether a window holds no speech."""
        if self.no_speech_threshold is None or self.logprob_threshold is None or logprob is None:
            return False
        return logprob < self.logprob_threshold and no_speech > self.no_speech_threshold


def quality_of(config: Any, temperature: Any, given: Mapping[str, Any], prompt_condition_type: str | None) -> Quality:
    """Return the options of a call; those that are None are the generation config's."""
    named = {name: given.get(name) if given.get(name) is not None else vars(config).get(name) for name in OPTIONS}
    temperatures = temperature if isinstance(temperature, list | tuple) else [temperature or 0.0]
    return Quality(
        temperatures=tuple(each or 0.0 for each in temperatures),
        prompt_condition_type=prompt_condition_type or FIRST,
        **named,
    )


def compression_ratio(tokens: Sequence[int], vocab_size: int) -> float:
    """Return the bytes of ids divided by those that zlib makes of them."""
    width = int(math.log2(vocab_size) / 8) + 1
    data = b"".join(int(token).to_bytes(width, "little") for token in tokens)
    return len(data) / len(zlib.compress(data))


def mean_logprob(written: Any, tokens: Sequence[int], temperature: float) -> float:
    """Return the mean log-probability of a text without the temperature; of beams, their score."""
    if getattr(written, "sequences_scores", None) is not None:
        return float(written.sequences_scores[0])
    scores_NV = np.stack([to_host(each.array)[0] for each in written.scores])[: len(tokens)]
    chosen = list(tokens)[-len(scores_NV) :]
    logprobs = log_softmax(scores_NV.astype(np.float32) * np.float32(temperature or 1.0))
    return float(logprobs[np.arange(len(chosen)), chosen].sum() / len(chosen))


def no_speech_probability(model: Any, audio_ASD: Tensor, prompt: Sequence[int], start: int, token: int) -> float:
    """Return the probability of the token for no speech after the one that starts a text.

    Args:    start: the place of that one in the prompt
    """
    logits_V = Steps(model, audio_ASD).start([list(prompt)], [start])[0, 0]
    return float(np.exp(log_softmax(logits_V.astype(np.float32)))[token])


def token_times(
    model: Any, audio_SD: Tensor, prompt: Sequence[int], tokens: Sequence[int], frames: int | None
) -> npt.NDArray[np.float32]:
    """Return when each token of the prompt and of the text ends, in seconds from the start of the window.

    Those of the prompt are at 0, and the last token at the time of the one before.

    Args:
        audio_SD: the encoded sound, (S, D).
        tokens: of the text, with the one that ends it.
        frames: how many frames of the spectrogram are sound; None means all.
    """
    read = list(tokens)[:-1]  # the last one was never read
    times = np.zeros(len(prompt) + len(tokens), np.float32)
    if not read:
        return times
    scores_HNS, _ = attend(model, audio_SD, [*prompt, *read], heads_of(model))
    weights = np.exp(log_softmax(scores_HNS))[:, len(prompt) :, : None if frames is None else frames // 2]
    with np.errstate(invalid="ignore", divide="ignore"):  # of one token: its weights do not differ from the mean
        weights = (weights - weights.mean(-2, keepdims=True)) / weights.std(-2, keepdims=True)
    match_NS = median_filter(weights, int(model.config.median_filter_width)).mean(0)
    tokens_at, places = time_warp(-match_NS.astype(np.float64))
    ends = places[np.diff(tokens_at, prepend=-1).astype(bool)] * SECONDS_PER_TIMESTAMP
    times[len(prompt) : len(prompt) + len(ends)] = ends
    times[-1] = ends[-1]
    return times


def heads_of(model: Any) -> Sequence[Sequence[int]]:
    """Return the heads (layer, head) that follow the sound: of the generation config, else those that are published."""
    named = getattr(model.generation_config, "alignment_heads", None)
    heads: Sequence[Sequence[int]] = model.alignment_heads if named is None else named
    return heads


def text_before(segments: Sequence[Mapping[str, Any]], first: Sequence[int], most: int, begin: int) -> list[int]:
    """Return what a window reads of those before it: their last tokens.

    Args:
        first: what comes before them.
        most: how many tokens.
        begin: the first token of times; a segment with two of them at the end loses the last.
    """
    tokens: list[int] = []
    for segment in segments:
        own = segment["tokens"].tolist()
        tokens += own[:-1] if len(own) > 2 and own[-2] >= begin else own
    return [*first, *tokens[-most:]]

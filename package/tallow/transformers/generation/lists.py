"""The processors and criteria that a `GenerationConfig` asks for, in the order of transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.transformers.generation import logits_process as rules
from tallow.transformers.generation import warpers
from tallow.transformers.generation.configuration_utils import GenerationConfig
from tallow.transformers.generation.guidance import UnbatchedClassifierFreeGuidanceLogitsProcessor
from tallow.transformers.generation.stopping_criteria import (
    EosTokenCriteria,
    MaxLengthCriteria,
    MaxTimeCriteria,
    StopStringCriteria,
)


@dataclass(frozen=True, kw_only=True)
class Given:
    """The inputs that processors depend on besides the config.

    Attributes:
        prompt_length: the tokens of a prompt, with padding.
        padding: how many of them are padding in each row; None means none.
        source: what the encoder reads, or the prompts of a decoder, (B, S); None if those are no ids.
        end: the ids that end a text.
    """

    prompt_length: int
    padding: Sequence[int] | None
    source: Tensor | None
    end: Sequence[int]
    vocab_size: int
    is_encoder_decoder: bool


def processors_of(config: GenerationConfig, given: Given, prefix_allowed_tokens_fn: Any = None) -> list[Any]:
    """Return the processors of a config, without those of draws.

    Warns:   TallowWarning for entries that need ids, where there are none
    """
    ids = _ids_for(config, given)
    end, length, bos = list(given.end), given.prompt_length, config.forced_bos_token_id
    padding = None if given.padding is None else wrap(np.array(given.padding))
    fewest, least = config.min_new_tokens, config.min_length
    begin = length if length > 1 or bos is None else length + 1
    makers: tuple[tuple[Any, Callable[[], Any]], ...] = (
        (config.sequence_bias, lambda: rules.SequenceBiasLogitsProcessor(config.sequence_bias)),
        (
            ids is not None and config.encoder_repetition_penalty not in (None, 1.0),
            lambda: rules.EncoderRepetitionPenaltyLogitsProcessor(config.encoder_repetition_penalty, cast(Tensor, ids)),
        ),
        (
            config.repetition_penalty not in (None, 1.0),
            lambda: rules.RepetitionPenaltyLogitsProcessor(config.repetition_penalty, padding),
        ),
        (config.no_repeat_ngram_size, lambda: rules.NoRepeatNGramLogitsProcessor(config.no_repeat_ngram_size)),
        (
            ids is not None and config.encoder_no_repeat_ngram_size,
            lambda: rules.EncoderNoRepeatNGramLogitsProcessor(config.encoder_no_repeat_ngram_size, cast(Tensor, ids)),
        ),
        (
            config.bad_words_ids is not None,
            lambda: rules.NoBadWordsLogitsProcessor(config.bad_words_ids, end),
        ),
        (end and least, lambda: rules.MinLengthLogitsProcessor(least, end)),
        (end and fewest, lambda: rules.MinNewTokensLengthLogitsProcessor(length, fewest, end)),
        (
            prefix_allowed_tokens_fn,
            lambda: rules.PrefixConstrainedLogitsProcessor(prefix_allowed_tokens_fn, config.num_beams),
        ),
        (bos is not None, lambda: rules.ForcedBOSTokenLogitsProcessor(bos)),
        (
            config.forced_eos_token_id is not None,
            lambda: rules.ForcedEOSTokenLogitsProcessor(config.max_length, config.forced_eos_token_id),
        ),
        (config.remove_invalid_values is True, rules.InfNanRemoveLogitsProcessor),
        (
            config.exponential_decay_length_penalty is not None,
            lambda: rules.ExponentialDecayLengthPenalty(config.exponential_decay_length_penalty, end, length),
        ),
        (
            config.suppress_tokens is not None,
            lambda: rules.SuppressTokensLogitsProcessor(config.suppress_tokens),
        ),
        (
            config.begin_suppress_tokens is not None,
            lambda: rules.SuppressTokensAtBeginLogitsProcessor(config.begin_suppress_tokens, begin),
        ),
    )
    return [make() for is_on, make in makers if is_on]


def _ids_for(config: GenerationConfig, given: Given) -> Tensor | None:
    """Return the ids that the processors of sources count; warn of entries that have none."""
    if given.source is None:
        asked = (
            ("encoder_repetition_penalty", config.encoder_repetition_penalty not in (None, 1.0)),
            ("encoder_no_repeat_ngram_size", config.encoder_no_repeat_ngram_size),
        )
        if names := [name for name, is_on in asked if is_on]:
            warn(f"generate: {', '.join(names)} has no effect without input_ids", TallowWarning)
    if not given.prompt_length and not given.is_encoder_decoder:
        asked = (
            ("repetition_penalty", config.repetition_penalty not in (None, 1.0)),
            ("no_repeat_ngram_size", config.no_repeat_ngram_size),
        )
        if names := [name for name, is_on in asked if is_on]:
            warn(f"generate: {', '.join(names)} counts only new tokens: there are no input_ids", TallowWarning)
    return given.source


def guidance_of(config: GenerationConfig, model: Any, negative_ids: Any, negative_mask: Any) -> list[Any]:
    """Return the processor of `guidance_scale`, if the config has one."""
    if config.guidance_scale in (None, 1):
        return []
    return [
        UnbatchedClassifierFreeGuidanceLogitsProcessor(
            config.guidance_scale, model, negative_ids, negative_mask, bool(config.use_cache)
        )
    ]


def warpers_of(config: GenerationConfig, ends: int) -> list[Any]:
    """Return the processors of draws.

    Args:    ends: how many ids end a text; with beams, one token more than these is kept
    """
    if not config.do_sample:
        return []
    least = 1 if config.num_beams in (None, 1) else max(ends, 1) + 1
    makers: tuple[tuple[Any, Callable[[], Any]], ...] = (
        (config.temperature not in (None, 1.0), lambda: warpers.TemperatureLogitsWarper(config.temperature)),
        (config.top_h is not None, lambda: warpers.TopHLogitsWarper(config.top_h)),
        (config.top_k, lambda: warpers.TopKLogitsWarper(config.top_k, min_tokens_to_keep=least)),
        (
            config.top_p is not None and config.top_p < 1,
            lambda: warpers.TopPLogitsWarper(config.top_p, min_tokens_to_keep=least),
        ),
        (
            config.min_p is not None,
            lambda: warpers.MinPLogitsWarper(config.min_p, min_tokens_to_keep=least),
        ),
        (
            config.typical_p is not None and config.typical_p < 1,
            lambda: warpers.TypicalLogitsWarper(config.typical_p, min_tokens_to_keep=least),
        ),
        (
            config.epsilon_cutoff,
            lambda: warpers.EpsilonLogitsWarper(config.epsilon_cutoff, min_tokens_to_keep=least),
        ),
        (config.eta_cutoff, lambda: warpers.EtaLogitsWarper(config.eta_cutoff, min_tokens_to_keep=least)),
    )
    return [make() for is_on, make in makers if is_on]


def closing_of(config: GenerationConfig, vocab_size: int) -> list[Any]:
    """Return the processors that come last: the watermark, and the normalization."""
    closing = []
    if config.watermarking_config is not None:
        closing.append(config.watermarking_config.construct_processor(vocab_size, "cpu"))
    if config.renormalize_logits is True:
        closing.append(rules.LogitNormalization())
    return closing


def criteria_of(config: GenerationConfig, end: Sequence[int], tokenizer: Any) -> list[Any]:
    """Return the criteria of a config.  Raises: ArgumentError for stop strings without a tokenizer"""
    criteria: list[Any] = [MaxLengthCriteria(config.max_length)]
    if config.max_time is not None:
        criteria.append(MaxTimeCriteria(config.max_time))
    if config.stop_strings is not None:
        if tokenizer is None:
            raise ArgumentError("stop_strings without a tokenizer", hint="pass generate(..., tokenizer=tokenizer)")
        if not isinstance(config.stop_strings, str | list | tuple):
            raise ArgumentError(f"stop_strings={config.stop_strings!r:.80}", hint="pass a string, or a list of them")
        criteria.append(StopStringCriteria(tokenizer, config.stop_strings))
    if end:
        criteria.append(EosTokenCriteria(list(end)))
    return criteria


def merged(own: list[Any], passed: Iterable[Any] | None) -> list[Any]:
    """Return the config's processors or criteria, and those that are passed, which replace those of their class."""
    if passed is not None and not isinstance(passed, Iterable):
        raise ArgumentError(f"generate: a list of rules is a {type(passed).__name__}", hint="pass a list")
    others = list(passed or ())
    replaced = {type(each): each for each in others}
    kinds = {type(each) for each in own}
    kept = [replaced.get(type(each), each) for each in own]
    return [*kept, *(each for each in others if type(each) not in kinds)]

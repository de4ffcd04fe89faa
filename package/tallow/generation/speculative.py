"""Speculative decoding: a small model, or the text itself, drafts tokens; a large model verifies several at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tallow.devices import to_host
from tallow.errors import ArgumentError
from tallow.generation.batch import BatchModel
from tallow.generation.filters import Weights
from tallow.generation.processors import LogitsProcessor, Text, apply_processors, require_count
from tallow.generation.sampling import Sampler
from tallow.generation.sequence import check_prompt, checked_ids, dtype_option


class RewindingModel(BatchModel, Protocol):
    """The interface of a model whose cache can return to earlier positions."""

    def new_cache(
        self, *, length: int, batch: int = 1, padding: Sequence[int] | None = None, sliding: bool = True
    ) -> Any:
        """Return an empty cache; with sliding=False it can `rewind`."""


class Draft(Protocol):
    """The interface of what proposes the next tokens."""

    def guess(self, text: Text, count: int, sampler: Sampler) -> tuple[list[int], list[Weights]]:
        """Return at most `count` tokens that may follow, and the distributions they were drawn from."""

    def truncate(self, length: int) -> None:
        """Forget what was read of the text from `length` on."""


class ModelDraft:
    """Tokens that a smaller model draws.

    Args:
        length: of the longest text.
        processors: as `generate`
        least: no token follows one that was drawn with a lower probability.
        cache_dtype: as `generate`
    """

    def __init__(
        self,
        model: RewindingModel,
        length: int,
        processors: Sequence[LogitsProcessor] = (),
        least: float = 0.0,
        cache_dtype: Any = None,
    ) -> None:
        self._model = model
        self._cache = model.new_cache(length=length, sliding=False, **dtype_option(cache_dtype))
        self._processors = processors
        self._least = least

    def guess(self, text: Text, count: int, sampler: Sampler) -> tuple[list[int], list[Weights]]:
        """Return at most `count` tokens that may follow, and the distributions they were drawn from."""
        start = len(text)
        distributions: list[Weights] = []
        while len(distributions) < count:
            logits_V = to_host(self._model.next_logits(text[self._cache.length :], self._cache))
            if not distributions:
                self._cache.mark()
            distributions.append(sampler.distribution(apply_processors(logits_V, text, self._processors), text))
            text.append(sampler.draw(distributions[-1]))
            if distributions[-1][text[-1]] < self._least:
                break
        guesses = text[start:]
        del text[start:]
        return guesses, distributions

    def truncate(self, length: int) -> None:
        """Forget what was read of the text from `length` on."""
        self._cache.rewind(min(self._cache.length, length))


class PromptLookup:
    """Tokens that followed the last tokens of the text where they occurred before.

    Args:
        vocab_size: the number of token ids.
        longest: the most last tokens to look for; fewer where these do not occur.

    Source:  Saxena 2023, https://github.com/apoorvumang/prompt-lookup-decoding
    """

    def __init__(self, vocab_size: int, longest: int = 2) -> None:
        require_count("max_matching_ngram_size", longest, 1)
        self._vocab_size = vocab_size
        self._longest = longest

    def guess(self, text: Text, count: int, sampler: Sampler) -> tuple[list[int], list[Weights]]:
        """Return at most `count` tokens that may follow, and distributions that have nothing else."""
        guesses = self._following(np.array(text, np.int64), count)
        return guesses, [self._only(token) for token in guesses]

    def _following(self, text_T: npt.NDArray[np.int64], count: int) -> list[int]:
        for size in range(min(self._longest, len(text_T) - 1), 0, -1):
            windows = np.lib.stride_tricks.sliding_window_view(text_T[:-1], size)
            places = np.flatnonzero((windows == text_T[-size:]).all(1))
            if len(places):
                start = int(places[0]) + size
                return [int(token) for token in text_T[start : start + count]]
        return []

    def _only(self, token: int) -> Weights:
        weights_V = np.zeros(self._vocab_size)
        weights_V[token] = 1
        return weights_V

    def truncate(self, length: int) -> None:
        """Nothing is kept of the text."""


def speculate(
    model: RewindingModel,
    draft: RewindingModel | ModelDraft | PromptLookup,
    tokens: Sequence[int],
    *,
    max_tokens: int,
    lookahead: int = 4,
    sample: Sampler | None = None,
    stop_ids: Collection[int] = (),
    processors: Sequence[LogitsProcessor] = (),
    cache_dtype: Any = None,
) -> Iterator[int]:
    """Continue `tokens` as `generate` does with `model`, in fewer steps of `model`.

    At each step `draft` proposes `lookahead` tokens; `model` accepts a prefix of them and adds one token. The
    distribution of the text is that of `model` alone; the greedy text is the same too.

    Args:
        draft: a smaller model with the same vocabulary, or a PromptLookup.
        sample: a Sampler; None takes the likeliest token.
        tokens, max_tokens, stop_ids, processors: as `generate`
        cache_dtype: as `generate`, for the caches of both models.

    Raises:  ArgumentError as `generate`, when the vocabularies differ, the draft model's context is too short, or
             lookahead is less than 1
    Source:  Leviathan et al. 2022, arXiv:2211.17192, algorithm 1
    """
    require_count("lookahead", lookahead, 1)
    count = check_prompt(model, tokens, max_tokens)
    stops = checked_ids("stop_ids", stop_ids)
    end = len(tokens) + count
    if not isinstance(draft, ModelDraft | PromptLookup):
        check_draft(model, draft, end - 1)
        draft = ModelDraft(draft, end - 1, processors, cache_dtype=cache_dtype)
    cache = model.new_cache(length=end - 1, sliding=False, **dtype_option(cache_dtype)) if count else None
    return _loop(model, draft, Text(tokens), end, lookahead, sample or Sampler(temperature=0), stops, processors, cache)


def check_draft(model: RewindingModel, draft: RewindingModel, length: int) -> None:
    """Raise ArgumentError unless a model can draft texts of some length for another."""
    if draft.vocab_size != model.vocab_size:
        raise ArgumentError(
            f"the draft model has a vocabulary of {draft.vocab_size}, the model one of {model.vocab_size}",
            hint="take a draft model with the same tokenizer",
        )
    if length > draft.context_length:
        raise ArgumentError(
            f"a text of {length} tokens; the draft model's context holds {draft.context_length}",
            hint="ask for fewer tokens",
        )


def _loop(
    model: RewindingModel,
    draft: Draft,
    text: Text,
    end: int,
    lookahead: int,
    sampler: Sampler,
    stop_ids: frozenset[int],
    processors: Sequence[LogitsProcessor],
    cache: Any,
) -> Iterator[int]:
    while len(text) < end:
        guesses, drafts = draft.guess(text, min(lookahead, end - len(text) - 1), sampler)
        # States return to the last mark only, and what follows it is read again: never more than `lookahead` tokens.
        if cache.has_states and len(text) - cache.length > lookahead:
            model.last_logits([text[cache.length : -1]], cache)
        cache.mark()
        unread = [*text[cache.length :], *guesses]
        logits_TV = to_host(model.last_logits([unread], cache, last=len(guesses) + 1)[0])
        distributions = _distributions(logits_TV, text, guesses, sampler, processors)
        for token in _accepted(guesses, drafts, distributions, sampler):
            if token in stop_ids:
                return
            yield token
            text.append(token)
        cache.rewind(min(cache.length, len(text) - 1))
        draft.truncate(len(text) - 1)


def _distributions(
    logits_TV: npt.NDArray[np.float32],
    text: Text,
    guesses: list[int],
    sampler: Sampler,
    processors: Sequence[LogitsProcessor],
) -> list[Weights]:
    """Return the model's distributions of the token after the text, and after each of the guesses."""
    start = len(text)
    distributions = []
    for place, logits_V in enumerate(logits_TV):
        text.extend(guesses[place - 1 : place] if place else [])
        distributions.append(sampler.distribution(apply_processors(logits_V, text, processors), text))
    del text[start:]
    return distributions


def _accepted(
    guesses: list[int], drafts: list[Weights], distributions: list[Weights], sampler: Sampler
) -> Iterator[int]:
    """Yield the guesses up to the first that is rejected, then one token of the model: in its place, or after all."""
    for guess, q_V, p_V in zip(guesses, drafts, distributions[:-1], strict=True):
        if sampler.uniform() * q_V[guess] >= p_V[guess]:
            rest_V = (p_V - q_V).clip(min=0)
            yield sampler.draw(rest_V if rest_V.any() else p_V)  # empty where both agree up to rounding
            return
        yield guess
    yield sampler.draw(distributions[-1])

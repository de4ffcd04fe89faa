"""Speculative decoding: a small model drafts tokens, and a large model verifies several at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tallow.devices import to_host
from tallow.errors import ArgumentError
from tallow.generation.batch import BatchModel
from tallow.generation.filters import Weights
from tallow.generation.processors import Text, require_count
from tallow.generation.sampling import Sampler
from tallow.generation.sequence import check_prompt, checked_ids, dtype_option


class RewindingModel(BatchModel, Protocol):
    """The interface of a model whose cache can be truncated."""

    def new_cache(
        self, *, length: int, batch: int = 1, padding: Sequence[int] | None = None, sliding: bool = True
    ) -> Any:
        """Return an empty cache; with sliding=False it can `truncate` to any length."""


def speculate(
    model: RewindingModel,
    draft: RewindingModel,
    tokens: Sequence[int],
    *,
    max_tokens: int,
    lookahead: int = 4,
    sample: Sampler | None = None,
    stop_ids: Collection[int] = (),
    cache_dtype: Any = None,
) -> Iterator[int]:
    """Continue `tokens` as `generate` does with `model`, in fewer steps of `model`.

    At each step `draft` proposes `lookahead` tokens; `model` accepts a prefix of them and adds one token. The
    distribution of the text is that of `model` alone; the greedy text is the same too.

    Args:
        draft: a smaller model with the same vocabulary.
        sample: a Sampler; None takes the likeliest token.
        tokens, max_tokens, stop_ids: as `generate`
        cache_dtype: as `generate`, for the caches of both models.

    Raises:  ArgumentError as `generate`, when the vocabularies differ, the draft model's context is too short, or
             lookahead is less than 1
    Source:  Leviathan et al. 2022, arXiv:2211.17192, algorithm 1
    """
    require_count("lookahead", lookahead, 1)
    if draft.vocab_size != model.vocab_size:
        raise ArgumentError(
            f"the draft model has a vocabulary of {draft.vocab_size}, the model one of {model.vocab_size}",
            hint="take a draft model with the same tokenizer",
        )
    count = check_prompt(model, tokens, max_tokens)
    if len(tokens) + count - 1 > draft.context_length:
        raise ArgumentError(
            f"a text of {len(tokens)} tokens and {count} more; the draft model's context holds {draft.context_length}",
            hint="ask for fewer tokens",
        )
    stops = checked_ids("stop_ids", stop_ids)
    return _loop(model, draft, Text(tokens), count, lookahead, sample or Sampler(temperature=0), stops, cache_dtype)


def _loop(
    model: RewindingModel,
    draft: RewindingModel,
    text: Text,
    count: int,
    lookahead: int,
    sampler: Sampler,
    stop_ids: frozenset[int],
    cache_dtype: Any,
) -> Iterator[int]:
    if not count:
        return
    end = len(text) + count
    options = dtype_option(cache_dtype)
    cache, draft_cache = (each.new_cache(length=end - 1, sliding=False, **options) for each in (model, draft))
    while len(text) < end:
        guesses, drafts = _guess(draft, draft_cache, text, min(lookahead, end - len(text) - 1), sampler)
        unread = [*text[cache.length :], *guesses]
        logits_TV = to_host(model.last_logits([unread], cache, last=len(guesses) + 1)[0])
        for token in _accepted(guesses, drafts, _distributions(logits_TV, text, guesses, sampler), sampler):
            if token in stop_ids:
                return
            yield token
            text.append(token)
        for each in (cache, draft_cache):
            each.truncate(min(each.length, len(text) - 1))


def _guess(
    draft: RewindingModel, cache: Any, text: Text, count: int, sampler: Sampler
) -> tuple[list[int], list[Weights]]:
    """Return the tokens that the draft model proposes, and the distributions it drew them from."""
    start = len(text)
    distributions = []
    for _ in range(count):
        logits_V = to_host(draft.next_logits(text[cache.length :], cache))
        distributions.append(sampler.distribution(logits_V, text))
        text.append(sampler.draw(distributions[-1]))
    guesses = text[start:]
    del text[start:]
    return guesses, distributions


def _distributions(
    logits_TV: npt.NDArray[np.float32], text: Text, guesses: list[int], sampler: Sampler
) -> list[Weights]:
    """Return the model's distributions of the token after the text, and after each of the guesses."""
    start = len(text)
    distributions = [sampler.distribution(logits_TV[0], text)]
    for guess, logits_V in zip(guesses, logits_TV[1:], strict=True):
        text.append(guess)
        distributions.append(sampler.distribution(logits_V, text))
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

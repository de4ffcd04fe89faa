"""The loop that continues one text, a token at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tallow.devices import to_host
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.generation.processors import Logits, LogitsProcessor, Text, require_count
from tallow.generation.sampling import Sample, choose, greedy, not_a_number


class LanguageModel(Protocol):
    """What `generate` needs of a model."""

    @property
    def context_length(self) -> int:
        """The most tokens that a cache can hold."""

    @property
    def vocab_size(self) -> int: ...

    def new_cache(self, *, length: int) -> Any:
        """An empty cache for one sequence of at most `length` tokens."""

    def next_logits(self, tokens: Sequence[int], cache: Any) -> Array:
        """Append `tokens` to the cache; the logits (V,) of the token that follows, in float32 on the model's device."""


class Choice(NamedTuple):
    """A token and its natural log-probability, and the likeliest tokens in its place, the first of them first."""

    token: int
    logprob: float
    top_logprobs: list[tuple[int, float]]


def generate(
    model: LanguageModel,
    tokens: Sequence[int],
    *,
    max_tokens: int | None,
    sample: Sample | None = None,
    stop_ids: Collection[int] = (),
    processors: Sequence[LogitsProcessor] = (),
    cache: Any = None,
) -> Iterator[int]:
    """Continue `tokens`, one id at a time, until `max_tokens` are made, a stop id comes, or the context is full.

    Args:
        tokens: the prompt; at least one id, such as BOS. It is not repeated in the output.
        max_tokens: None means as many as the context holds; the cache then grows as they come.
        sample: `greedy` if None; a `Sampler`, or any function of its signature.
        stop_ids: ids that end the text; they are not part of the output.
        processors: change the logits before `sample` sees them, in this order.
        cache: one of the model's that has read the first `cache.length` of the tokens, fewer than all; it goes on to
            read the others. None means a new one.

    Raises:  ArgumentError when the prompt is empty, holds an id outside the vocabulary or exceeds the context, or
             max_tokens is negative, all at the call; NumericError, at the token, when the logits hold NaN
    """
    return (token for token, _ in _choices(model, tokens, max_tokens, sample, stop_ids, processors, cache))


def generate_with_logprobs(
    model: LanguageModel,
    tokens: Sequence[int],
    *,
    max_tokens: int | None,
    top_logprobs: int = 0,
    sample: Sample | None = None,
    stop_ids: Collection[int] = (),
    processors: Sequence[LogitsProcessor] = (),
    cache: Any = None,
) -> Iterator[Choice]:
    """As `generate`, and how likely the model found each token, before penalties, temperature and whatever `sample`
    leaves out.

    Args:    top_logprobs: how many of the likeliest tokens to give with each
    Raises:  as `generate`; ArgumentError for a negative top_logprobs
    """
    require_count("top_logprobs", top_logprobs, 0)
    choices = _choices(model, tokens, max_tokens, sample, stop_ids, processors, cache)
    return (_scored(token, logits_V, top_logprobs) for token, logits_V in choices)


def check_prompt(model: LanguageModel, tokens: Sequence[int], max_tokens: int | None) -> int:
    """How many tokens may follow the prompt: max_tokens, or as many as there is room for.

    Raises:  ArgumentError as `generate`
    """
    if max_tokens is not None:
        require_count("max_tokens", max_tokens, 0)
    if not len(tokens):
        raise ArgumentError("the prompt holds no token", mend="start it with BOS: encode(text, bos=True)")
    checked_ids("the prompt", tokens)
    if min(tokens) < 0 or max(tokens) >= model.vocab_size:
        raise ArgumentError(
            f"the prompt holds an id outside 0..{model.vocab_size - 1}", mend="encode it with the model's own tokenizer"
        )
    if len(tokens) > model.context_length:
        raise ArgumentError(
            f"the prompt takes {len(tokens)} tokens, the model's context holds {model.context_length}",
            mend="shorten the prompt",
        )
    # The last token is never fed back, so it needs no place in the context.
    room = model.context_length - len(tokens) + 1
    return room if max_tokens is None else min(max_tokens, room)


def checked_ids(name: str, ids: Collection[int]) -> frozenset[int]:
    """The ids of tokens, each once.  Raises: ArgumentError for what is no collection of integers"""
    is_several = isinstance(ids, Collection)
    kinds = {*map(type, ids)} if is_several else {type(ids)}
    if not is_several or not all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        others = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ArgumentError(f"{name}: expected ids of tokens, got {others}", mend="pass a list of integers")
    return frozenset(ids)


def _choices(
    model: LanguageModel,
    tokens: Sequence[int],
    max_tokens: int | None,
    sample: Sample | None,
    stop_ids: Collection[int],
    processors: Sequence[LogitsProcessor],
    cache: Any,
) -> Iterator[tuple[int, Array]]:
    """The tokens, and the model's logits for each.  Raises: as `generate`"""
    count = check_prompt(model, tokens, max_tokens)
    if cache is None:
        growing: dict[str, bool] = {"growing": True} if max_tokens is None else {}
        cache = model.new_cache(length=len(tokens) + count - 1, **growing) if count else None
    elif cache.length >= len(tokens):
        raise ArgumentError(
            f"the cache has read {cache.length} tokens, the prompt has {len(tokens)}", mend="truncate it to fewer"
        )
    else:
        count = min(count, cache.capacity - len(tokens) + 1)
    stops = checked_ids("stop_ids", stop_ids)
    return _loop(model, Text(tokens), count, sample or greedy, stops, processors, cache)


def _loop(
    model: LanguageModel,
    text: Text,
    count: int,
    sample: Sample,
    stop_ids: frozenset[int],
    processors: Sequence[LogitsProcessor],
    cache: Any,
) -> Iterator[tuple[int, Array]]:
    pending = text[getattr(cache, "length", 0) :]
    for _ in range(count):
        logits_V = model.next_logits(pending, cache)
        (token,) = choose([sample], logits_V[None], [text], processors)
        if token in stop_ids:
            return
        yield token, logits_V
        text.append(token)
        pending = [token]  # the cache already holds everything before it


def _scored(token: int, logits_V: Array, top: int) -> Choice:
    logits_V = to_host(logits_V)
    scores_V = logits_V - log_sum_exp(logits_V)
    likeliest = np.argsort(-scores_V, kind="stable")[:top]
    return Choice(token, float(scores_V[token]), [(int(i), float(scores_V[i])) for i in likeliest])


def log_sum_exp(logits_V: Logits) -> np.float64:
    """log Σ exp(logits), in float64.  Raises: NumericError where there is a NaN or +inf among them"""
    highest = logits_V.max()
    if not np.isfinite(highest):
        raise not_a_number()
    return highest + np.log(np.exp(logits_V.astype(np.float64) - highest).sum())

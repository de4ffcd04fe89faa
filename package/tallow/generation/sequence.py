"""Continue one text, a token at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tallow.devices import to_host
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.generation.processors import Logits, LogitsProcessor, Text, require_count
from tallow.generation.sampling import Sample, choose, greedy, not_a_number


class LanguageModel(Protocol):
    """The interface of a model that `generate` can continue texts with."""

    @property
    def context_length(self) -> int:
        """The most tokens that a cache can hold."""

    @property
    def vocab_size(self) -> int:
        """The number of token ids."""

    def new_cache(self, *, length: int) -> Any:
        """Return an empty cache for one sequence of at most `length` tokens."""

    def next_logits(self, tokens: Sequence[int], cache: Any) -> Array:
        """Append `tokens` to the cache; return the logits (V,) of the next token, float32 on the model's device."""


class Choice(NamedTuple):
    """A token, its natural log-probability, and the likeliest tokens in its place, likeliest first."""

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
    cache_dtype: Any = None,
) -> Iterator[int]:
    """Continue `tokens`, yielding one id at a time, up to `max_tokens`, a stop id, or the end of the context.

    Args:
        tokens: the prompt; at least one id, such as BOS. It is not repeated in the output.
        max_tokens: None means as many as the context holds; the cache then grows as needed.
        sample: `greedy` if None; a `Sampler`, or any function of its signature.
        stop_ids: ids that end the text; they are not part of the output.
        processors: change the logits before `sample` sees them, in this order.
        cache: a cache of the model that holds the first `cache.length` of the tokens, fewer than all; the model reads
            the rest. None means a new cache.
        cache_dtype: of the keys and values in a new cache, as `dtype` of the model's `new_cache`.

    Raises:  ArgumentError, at the call, when the prompt is empty, holds an id outside the vocabulary or exceeds the
             context, or max_tokens is negative; NumericError, at the token, when the logits hold NaN
    """
    choices = _choices(model, tokens, max_tokens, sample, stop_ids, processors, cache, cache_dtype)
    return (token for token, _ in choices)


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
    cache_dtype: Any = None,
) -> Iterator[Choice]:
    """As `generate`, with log-probabilities of the model itself: before penalties, temperature and any other filter.

    Args:    top_logprobs: how many of the likeliest tokens to return with each token
    Raises:  as `generate`; ArgumentError for a negative top_logprobs
    """
    require_count("top_logprobs", top_logprobs, 0)
    choices = _choices(model, tokens, max_tokens, sample, stop_ids, processors, cache, cache_dtype)
    return (scored(token, logits_V, top_logprobs) for token, logits_V in choices)


def dtype_option(cache_dtype: Any) -> dict[str, Any]:
    """Return the arguments of `new_cache` for a dtype, so that models without this option work without one."""
    return {} if cache_dtype is None else {"dtype": cache_dtype}


def check_prompt(model: LanguageModel, tokens: Sequence[int], max_tokens: int | None) -> int:
    """Return how many tokens may follow the prompt: max_tokens, or fewer if the context ends before.

    Raises:  ArgumentError as `generate`
    """
    if max_tokens is not None:
        require_count("max_tokens", max_tokens, 0)
    if not len(tokens):
        raise ArgumentError("the prompt holds no token", hint="start it with BOS: encode(text, bos=True)")
    checked_ids("the prompt", tokens)
    if min(tokens) < 0 or max(tokens) >= model.vocab_size:
        raise ArgumentError(
            f"the prompt holds an id outside 0..{model.vocab_size - 1}", hint="encode it with the model's own tokenizer"
        )
    if len(tokens) > model.context_length:
        raise ArgumentError(
            f"the prompt takes {len(tokens)} tokens, the model's context holds {model.context_length}",
            hint="shorten the prompt",
        )
    # The last token is never fed back, so it takes no position of the context.
    limit = model.context_length - len(tokens) + 1
    return limit if max_tokens is None else min(max_tokens, limit)


def checked_ids(name: str, ids: Collection[int]) -> frozenset[int]:
    """Return the ids of tokens as a set.  Raises: ArgumentError unless they are a collection of integers"""
    is_collection = isinstance(ids, Collection)
    kinds = {*map(type, ids)} if is_collection else {type(ids)}
    if not is_collection or not all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        others = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ArgumentError(f"{name}: expected ids of tokens, got {others}", hint="pass a list of integers")
    return frozenset(ids)


def _choices(
    model: LanguageModel,
    tokens: Sequence[int],
    max_tokens: int | None,
    sample: Sample | None,
    stop_ids: Collection[int],
    processors: Sequence[LogitsProcessor],
    cache: Any,
    cache_dtype: Any,
) -> Iterator[tuple[int, Array]]:
    """Return an iterator of tokens and the model's logits for each.  Raises: as `generate`"""
    count = check_prompt(model, tokens, max_tokens)
    if cache is None:
        options: dict[str, Any] = {"growing": True} if max_tokens is None else {}
        options |= dtype_option(cache_dtype)
        cache = model.new_cache(length=len(tokens) + count - 1, **options) if count else None
    elif cache_dtype is not None:
        raise ArgumentError("both a cache and a cache_dtype", hint="make the cache with model.new_cache(dtype=...)")
    elif cache.length >= len(tokens):
        raise ArgumentError(
            f"the cache has read {cache.length} tokens, the prompt has {len(tokens)}", hint="truncate it to fewer"
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


def scored(token: int, logits_V: Array, top: int) -> Choice:
    """Return a token with its log-probability by the logits, and the `top` likeliest tokens."""
    ((choice, _),) = scored_each([token], logits_V[None], top)
    return choice


def scored_each(tokens: Sequence[int], logits_TV: Array, top: int) -> list[tuple[Choice, int]]:
    """Return each token with its log-probability by its logits and the `top` likeliest tokens, and its rank: 1 for the
    likeliest.  Raises: NumericError when logits hold NaN or +inf
    """
    logits_TV = to_host(logits_TV)
    given_T1 = np.array(tokens, np.int64)[:, None]
    ranks_T = (logits_TV > np.take_along_axis(logits_TV, given_T1, 1)).sum(1) + 1
    scores = [logits_V - log_sum_exp(logits_V) for logits_V in logits_TV]
    return [
        (Choice(token, float(scores_V[token]), [(int(i), float(scores_V[i])) for i in _likeliest(scores_V, top)]), rank)
        for token, scores_V, rank in zip(tokens, scores, ranks_T.tolist(), strict=True)
    ]


def _likeliest(scores_V: npt.NDArray[np.floating], top: int) -> npt.NDArray[np.int64]:
    """Return the `top` likeliest tokens, likeliest first, the first of equals. To sort all would take milliseconds."""
    if not 0 < top < len(scores_V):
        return np.argsort(-scores_V, kind="stable")[:top]
    ids_N = np.flatnonzero(scores_V >= np.partition(scores_V, -top)[-top])
    return ids_N[np.argsort(-scores_V[ids_N], kind="stable")[:top]]


def log_sum_exp(logits_V: Logits) -> np.float64:
    """Return log Σ exp(logits) in float64.  Raises: NumericError when the logits hold NaN or +inf"""
    highest = logits_V.max()
    if not np.isfinite(highest):
        raise not_a_number()
    return highest + np.log(np.exp(logits_V.astype(np.float64) - highest).sum())

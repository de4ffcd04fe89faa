"""Continue several texts of different lengths at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.generation.processors import LogitsProcessor, Text
from tallow.generation.sampling import Sample, choose, greedy
from tallow.generation.sequence import LanguageModel, check_prompt, checked_ids, dtype_option


class BatchModel(LanguageModel, Protocol):
    """The interface of a model that reads several texts at once."""

    def new_cache(self, *, length: int, batch: int = 1, padding: Sequence[int] | None = None) -> Any:
        """Return an empty cache for `batch` sequences; the first `padding[i]` tokens of sequence i are padding."""

    def last_logits(self, tokens: Sequence[Sequence[int]], cache: Any, last: int = 1) -> Array:
        """Append tokens (B, T) to the cache; return the logits (B, last, V) that follow the last ones."""


def generate_batch(
    model: BatchModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    sample: Sample | Sequence[Sample] | None = None,
    stop_ids: Collection[int] = (),
    processors: Sequence[LogitsProcessor] = (),
    cache_dtype: Any = None,
) -> Iterator[tuple[int, int]]:
    """Continue each prompt for `max_tokens` or up to a stop id; yield pairs (index of the prompt, token).

    The prompts form one batch, padded on the left. A text that has ended leaves the batch. The longest prompt and its
    continuation have to fit the context; that limits the length of every continuation.

    Args:
        sample: one for all prompts, or one for each. A Sampler of its own makes a text independent of the others.
        stop_ids, processors, cache_dtype: as `generate`

    Raises:  ArgumentError as `generate`, for no prompts, and for a wrong number of samples

    Example:
        texts = [[] for _ in prompts]
        for row, token in generate_batch(model, prompts, max_tokens=100):
            texts[row].append(token)
    """
    if not prompts:
        raise ArgumentError("generate_batch: no prompts", hint="pass one or more")
    count = min(check_prompt(model, prompt, max_tokens) for prompt in prompts)
    samples = list(sample) if isinstance(sample, Sequence) else [sample or greedy] * len(prompts)
    if len(samples) != len(prompts):
        raise ArgumentError(
            f"generate_batch: {len(samples)} samples for {len(prompts)} prompts", hint="pass one sample for each prompt"
        )
    stops = checked_ids("stop_ids", stop_ids)
    return _loop(model, [Text(prompt) for prompt in prompts], count, samples, stops, processors, cache_dtype)


def _loop(
    model: BatchModel,
    texts: list[Text],
    count: int,
    samples: list[Sample],
    stop_ids: frozenset[int],
    processors: Sequence[LogitsProcessor],
    cache_dtype: Any,
) -> Iterator[tuple[int, int]]:
    if not count:
        return
    longest = max(map(len, texts))
    padding = [longest - len(text) for text in texts]
    options = dtype_option(cache_dtype)
    cache = model.new_cache(length=longest + count - 1, batch=len(texts), padding=padding, **options)
    pending = [[0] * pad + text for pad, text in zip(padding, texts, strict=True)]
    rows = list(range(len(texts)))  # of the prompts whose texts have not ended
    for _ in range(count):
        logits_BV = model.last_logits(pending, cache)[:, 0]
        active = []
        tokens = choose([samples[row] for row in rows], logits_BV, [texts[row] for row in rows], processors)
        for place, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            if token not in stop_ids:
                yield row, token
                texts[row].append(token)
                active.append(place)
        if not active:
            return
        cache.select(active)
        rows = [rows[place] for place in active]
        pending = [texts[row][-1:] for row in rows]

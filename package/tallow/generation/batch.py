"""Several texts at once, whatever their lengths."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.generation.processors import LogitsProcessor, Text
from tallow.generation.sampling import Sample, choose, greedy
from tallow.generation.sequence import LanguageModel, check_prompt, checked_ids


class BatchModel(LanguageModel, Protocol):
    """What is needed of a model that reads several texts at once."""

    def new_cache(self, *, length: int, batch: int = 1, padding: Sequence[int] | None = None) -> Any:
        """An empty cache for `batch` sequences, of which the first `padding` tokens are no text."""

    def last_logits(self, tokens: Sequence[Sequence[int]], cache: Any, last: int = 1) -> Array:
        """Append tokens (B, T) to the cache; the logits (B, last, V) of what follows the last ones, as next_logits."""


def generate_batch(
    model: BatchModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    sample: Sample | Sequence[Sample] | None = None,
    stop_ids: Collection[int] = (),
    processors: Sequence[LogitsProcessor] = (),
) -> Iterator[tuple[int, int]]:
    """Continue each prompt until it has `max_tokens` more, or comes to a stop id: pairs (index of the prompt, token).

    The texts are read side by side, the shorter ones padded at the left; those that have ended are computed no more.
    The longest prompt and what follows it have to fit the context, and no text gets more than that leaves.

    Args:
        sample: one for all, or one for each. A Sampler of its own makes a text independent of those beside it.
        stop_ids, processors: as `generate`

    Raises:  ArgumentError as `generate`, for no prompts, and for another number of samples

    Example:
        texts = [[] for _ in prompts]
        for row, token in generate_batch(model, prompts, max_tokens=100):
            texts[row].append(token)
    """
    if not prompts:
        raise ArgumentError("generate_batch: no prompts", mend="pass one or more")
    count = min(check_prompt(model, prompt, max_tokens) for prompt in prompts)
    samples = list(sample) if isinstance(sample, Sequence) else [sample or greedy] * len(prompts)
    if len(samples) != len(prompts):
        raise ArgumentError(f"generate_batch: {len(samples)} samples for {len(prompts)} prompts", mend="pass as many")
    stops = checked_ids("stop_ids", stop_ids)
    return _loop(model, [Text(prompt) for prompt in prompts], count, samples, stops, processors)


def _loop(
    model: BatchModel,
    texts: list[Text],
    count: int,
    samples: list[Sample],
    stop_ids: frozenset[int],
    processors: Sequence[LogitsProcessor],
) -> Iterator[tuple[int, int]]:
    if not count:
        return
    longest = max(map(len, texts))
    padding = [longest - len(text) for text in texts]
    cache = model.new_cache(length=longest + count - 1, batch=len(texts), padding=padding)
    pending = [[0] * pad + text for pad, text in zip(padding, texts, strict=True)]
    rows = list(range(len(texts)))  # those that go on
    for _ in range(count):
        logits_BV = model.last_logits(pending, cache)[:, 0]
        going = []
        tokens = choose([samples[row] for row in rows], logits_BV, [texts[row] for row in rows], processors)
        for place, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            if token not in stop_ids:
                yield row, token
                texts[row].append(token)
                going.append(place)
        if not going:
            return
        cache.select(going)
        rows = [rows[place] for place in going]
        pending = [texts[row][-1:] for row in rows]

"""Beam search: search for the likeliest continuation by extending the likeliest few texts at each step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.devices import to_host
from tallow.errors import ArgumentError
from tallow.generation.batch import BatchModel
from tallow.generation.processors import (
    LogitsProcessor,
    Text,
    apply_processors,
    require,
    require_count,
    require_number,
)
from tallow.generation.sampling import not_a_number
from tallow.generation.sequence import check_prompt, checked_ids, dtype_option, log_sum_exp

MOST_POWER = 30  # of a length; a larger one could exceed the largest float


class Beam(NamedTuple):
    """A continuation, without its stop id, and its score: sum of log-probabilities / length^length_penalty."""

    tokens: list[int]
    score: float


class Candidate(NamedTuple):
    """A text, the row of the batch it continues, and the sum of its log-probabilities."""

    text: Text
    row: int
    score: float


def beam_search(
    model: BatchModel,
    tokens: Sequence[int],
    *,
    num_beams: int,
    max_tokens: int | None,
    num_return_sequences: int = 1,
    length_penalty: float = 1.0,
    early_stopping: bool | Literal["never"] = False,
    stop_ids: Collection[int] = (),
    processors: Sequence[LogitsProcessor] = (),
    cache_dtype: Any = None,
) -> list[Beam]:
    """Return the best continuations of `tokens`, best first. Arguments and results are those of transformers.

    Args:
        num_beams: the number of texts to extend at each step.
        max_tokens: None means as many as the context holds; the cache then grows as needed.
        num_return_sequences: how many to return, at most num_beams.
        length_penalty: scores are divided by the length, with the stop id, to this power; above 0 favours long texts.
        early_stopping: when to stop once num_beams texts have ended. True: at once. False: when the best unfinished
            text, at its present length, scores below them. "never": when it would at any length.
        stop_ids, cache_dtype: as `generate`
        processors: as `generate`, but of log-probabilities

    Raises:  ArgumentError as `generate`, and for arguments out of range; NumericError when the logits hold NaN
    Source:  Wu et al. 2016, arXiv:1609.08144, section 7, for search with a length penalty
    """
    require_count("num_beams", num_beams, 1)
    if max_tokens is not None:
        require_count("max_tokens", max_tokens, 1)
    require_count("num_return_sequences", num_return_sequences, 1)
    expected = f"a number from -{MOST_POWER} to {MOST_POWER}"
    require_number("length_penalty", length_penalty, expected, lambda power: abs(power) <= MOST_POWER)
    is_valid = type(early_stopping) is bool or early_stopping == "never"
    require(is_valid, "early_stopping", early_stopping, 'True, False or "never"')
    if not 1 <= num_return_sequences <= num_beams:
        raise ArgumentError(f"num_return_sequences={num_return_sequences}", hint=f"pass 1 to {num_beams=}")
    count = check_prompt(model, tokens, max_tokens)
    stops = checked_ids("stop_ids", stop_ids)
    options: dict[str, Any] = {"growing": True} if max_tokens is None else {}
    cache = model.new_cache(length=len(tokens) + count - 1, **options, **dtype_option(cache_dtype))
    running = [Candidate(Text(tokens), 0, 0.0)]
    finished: list[Beam] = []
    pending = [list(tokens)]
    for length in range(1, count + 1):
        logits_BV = to_host(model.last_logits(pending, cache)[:, 0])
        # Each beam can end with every stop id, so this many candidates hold at least num_beams that do not end.
        candidates = _best(running, logits_BV, max(2, 1 + len(stops)) * num_beams, processors)
        ends = [candidate.text[-1] in stops or length == count for candidate in candidates]
        ended = [c for c, end in zip(candidates[:num_beams], ends, strict=False) if end]
        finished += [_beam(candidate, stops, length**length_penalty) for candidate in ended]
        finished = sorted(finished, key=lambda beam: -beam.score)[:num_beams]
        running = [candidate for candidate, end in zip(candidates, ends, strict=True) if not end][:num_beams]
        if not running:
            break
        if len(finished) == num_beams:
            longest = count if early_stopping == "never" and length_penalty > 0 else length
            if early_stopping is True or running[0].score / longest**length_penalty <= finished[-1].score:
                break
        cache.select([candidate.row for candidate in running])
        pending = [candidate.text[-1:] for candidate in running]
    if not finished:
        raise not_a_number()
    return finished[:num_return_sequences]


def _best(
    running: list[Candidate],
    logits_BV: npt.NDArray[np.float32],
    count: int,
    processors: Sequence[LogitsProcessor],
) -> list[Candidate]:
    """Return the `count` likeliest texts that extend those of the batch by one token, likeliest first.

    There may be fewer: tokens that a processor rules out extend no text.
    """
    rows = []
    for candidate, logits_V in zip(running, logits_BV, strict=True):
        logprobs_V = apply_processors(logits_V - np.float32(log_sum_exp(logits_V)), candidate.text, processors)
        rows.append(logprobs_V + np.float32(candidate.score))
    scores_N = np.concatenate(rows)
    best = np.argpartition(-scores_N, count)[:count] if count < len(scores_N) else np.arange(len(scores_N))
    best = best[scores_N[best] > -inf]
    candidates = []
    for index in best[np.argsort(-scores_N[best], kind="stable")]:
        row, token = divmod(int(index), logits_BV.shape[1])
        candidates.append(Candidate(running[row].text.then(token), row, float(scores_N[index])))
    return candidates


def _beam(candidate: Candidate, stops: frozenset[int], divisor: float) -> Beam:
    tokens = candidate.text[candidate.text.prompt :]
    return Beam(tokens[:-1] if tokens[-1] in stops else tokens, candidate.score / divisor)

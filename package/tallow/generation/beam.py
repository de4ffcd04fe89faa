"""Beam search: search for the likeliest continuation by extending the likeliest few texts at each step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.devices import to_host
from tallow.errors import ArgumentError
from tallow.generation.batch import BatchModel
from tallow.generation.processors import (
    Logits,
    LogitsProcessor,
    Text,
    apply_processors,
    require,
    require_count,
    require_number,
)
from tallow.generation.sampling import not_a_number
from tallow.generation.sequence import check_prompt, checked_ids, dtype_option, log_sum_exp
from tallow.random import Generator

MOST_POWER = 30  # of a length; a larger one could exceed the largest float


class Beam(NamedTuple):
    """A continuation, without its stop id, and its score: sum of log-probabilities / length^length_penalty."""

    tokens: list[int]
    score: float


class Candidate(NamedTuple):
    """A text, the row of the batch it continues, and the sum of its log-probabilities.

    Attributes:
        path: the row that each of its tokens was chosen from.
    """

    text: Text
    row: int
    score: float
    path: tuple[int, ...] = ()


Ends: TypeAlias = Callable[[Sequence[Text]], Sequence[bool]]


@dataclass(frozen=True)
class BeamOptions:
    """How to search; num_beams, length_penalty and early_stopping as `beam_search`.

    Attributes:
        longest: the most tokens of a text.
        ends: returns whether each of some texts has ended.
        width: how many candidates to look at in a step; enough to hold num_beams that have not ended.
        draws: draw the candidates with this generator; None takes the likeliest.
    """

    num_beams: int
    longest: int
    ends: Ends
    width: int
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    draws: Generator | None = None


class Hypotheses:
    """The continuations of one prompt: those that a search extends, and the best of those that have ended.

    Attributes:
        running: at most num_beams, best first.
        finished: at most num_beams, best first; scores are divided by length^length_penalty.
        is_done: no text can become better than the finished ones.
    """

    def __init__(self, prompt: Text, options: BeamOptions) -> None:
        self.options = options
        self.running = [Candidate(prompt, 0, 0.0)]
        self.finished: list[Candidate] = []
        self.is_done = False
        self._length = 0

    def extend(self, scores_BV: npt.NDArray[np.float32]) -> None:
        """Extend the running texts by a token each.

        Args:    scores_BV: log-probabilities of the next token, a row for each running text
        """
        options = self.options
        self._length += 1
        candidates = self._candidates(scores_BV)
        ends = list(options.ends([candidate.text for candidate in candidates]))
        if not self.is_done:
            self._finish([c for c, end in zip(candidates[: options.num_beams], ends, strict=False) if end])
        open_ones = sorted((c for c, end in zip(candidates, ends, strict=True) if not end), key=lambda c: -c.score)
        self.running = open_ones[: options.num_beams]
        if not self.running:
            self.is_done = True
        elif len(self.finished) == options.num_beams:
            is_never = options.early_stopping == "never" and options.length_penalty > 0
            best = self.running[0].score / (options.longest if is_never else self._length) ** options.length_penalty
            self.is_done |= options.early_stopping is True or best <= self.finished[-1].score

    def _finish(self, ended: list[Candidate]) -> None:
        divisor = self._length**self.options.length_penalty
        self.finished += [candidate._replace(score=candidate.score / divisor) for candidate in ended]
        self.finished = sorted(self.finished, key=lambda each: -each.score)[: self.options.num_beams]

    def _candidates(self, scores_BV: npt.NDArray[np.float32]) -> list[Candidate]:
        """Return the likeliest texts, or drawn ones, that extend the running ones by one token.

        There may be fewer than `width`: tokens that a processor rules out extend no text.
        """
        sums = np.array([candidate.score for candidate in self.running], np.float32)
        scores_N = (scores_BV + sums[:, None]).ravel()
        count, draws = self.options.width, self.options.draws
        if draws is not None:
            chosen = _drawn(scores_N, count, draws)
        else:
            chosen = np.argpartition(-scores_N, count)[:count] if count < len(scores_N) else np.arange(len(scores_N))
            chosen = chosen[scores_N[chosen] > -inf]
            chosen = chosen[np.argsort(-scores_N[chosen], kind="stable")]
        candidates = []
        for index in chosen.tolist():
            row, token = divmod(index, scores_BV.shape[1])
            old = self.running[row]
            candidates.append(Candidate(old.text.then(token), row, float(scores_N[index]), (*old.path, row)))
        return candidates


def _drawn(scores_N: npt.NDArray[np.float32], count: int, draws: Generator) -> npt.NDArray[np.int64]:
    """Return the indices of `count` draws without replacement, in the order they are drawn.

    Source:  Efraimidis & Spirakis 2006: the smallest of exponential waiting times
    """
    weights_N = np.exp(scores_N.astype(np.float64) - scores_N.max())
    with np.errstate(divide="ignore"):
        waiting_N = draws.numpy.standard_exponential(len(weights_N)) / weights_N
    chosen = np.argsort(waiting_N, kind="stable")[:count]
    return chosen[weights_N[chosen] > 0]


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
    prompt = Text(tokens)

    def ends(texts: Sequence[Text]) -> list[bool]:
        return [text[-1] in stops or len(text) - text.prompt == count for text in texts]

    # Each beam can end with every stop id, so this many candidates hold at least num_beams that do not end.
    width = max(2, 1 + len(stops)) * num_beams
    search = Hypotheses(prompt, BeamOptions(num_beams, count, ends, width, length_penalty, early_stopping))
    pending = [list(tokens)]
    for _ in range(count):
        logits_BV = to_host(model.last_logits(pending, cache)[:, 0])
        rows = zip(search.running, logits_BV, strict=True)
        scores = [apply_processors(log_softmax(logits_V), each.text, processors) for each, logits_V in rows]
        search.extend(np.stack(scores))
        if search.is_done:
            break
        cache.select([candidate.row for candidate in search.running])
        pending = [candidate.text[-1:] for candidate in search.running]
    if not search.finished:
        raise not_a_number()
    return [_beam(candidate, stops) for candidate in search.finished[:num_return_sequences]]


def log_softmax(logits_V: Logits) -> Logits:
    """Return log-probabilities.  Raises: NumericError when the logits hold NaN or +inf"""
    return logits_V - np.float32(log_sum_exp(logits_V))


def _beam(candidate: Candidate, stops: frozenset[int]) -> Beam:
    tokens = candidate.text[candidate.text.prompt :]
    return Beam(tokens[:-1] if tokens[-1] in stops else tokens, candidate.score)

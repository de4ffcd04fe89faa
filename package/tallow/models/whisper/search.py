"""Choose the next tokens: greedily, by sampling, or by beam search.

Letters: B rows, V vocabulary. The rows of one sound, its beams or samples, are adjacent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tallow import kernels
from tallow.generation.sampling import not_a_number

PART = 256  # elements; see `largest`

Floats = npt.NDArray[np.float32]
Rows = list[list[int]]


class Choice(Protocol):
    """Interface of the search strategies, which choose the next token of each row."""

    def update(self, rows: Rows, logits_BV: Floats, sums: Floats) -> tuple[Rows, bool]:
        """Return the rows extended by one token each, and whether all have ended.

        The log-probabilities of the tokens are added to `sums` in place.
        """

    def has_ended(self, row: list[int]) -> bool:
        """Return whether further updates do not change a row."""

    def finish(self, rows: Rows, sums: Floats, group: int) -> list[list[tuple[list[int], float]]]:
        """Return the texts of each sound, which has `group` rows, with their log-probabilities."""


class Sampling:
    """Chooses for each row the likeliest token, or draws one."""

    def __init__(self, temperature: float, eot: int, rng: np.random.Generator) -> None:
        self.temperature = temperature
        self.eot = eot
        self.rng = rng

    def update(self, rows: Rows, logits_BV: Floats, sums: Floats) -> tuple[Rows, bool]:
        """Extend each row by one token; a row that has ended gets the end token again."""
        if self.temperature:
            tokens = draw(logits_BV / np.float32(self.temperature), self.rng)
        else:
            tokens = logits_BV.argmax(axis=-1)
        log_totals = log_sum_exp(logits_BV)
        extended = []
        for i, (row, token) in enumerate(zip(rows, tokens.tolist(), strict=True)):
            if row[-1] == self.eot:
                token = self.eot
            elif not np.isfinite(log_totals[i]):
                raise not_a_number()
            else:
                sums[i] += logits_BV[i, token] - log_totals[i]
            extended.append([*row, token])
        return extended, all(row[-1] == self.eot for row in extended)

    def has_ended(self, row: list[int]) -> bool:
        """Return whether the last token is the end token."""
        return row[-1] == self.eot

    def finish(self, rows: Rows, sums: Floats, group: int) -> list[list[tuple[list[int], float]]]:
        """Return the texts in the order of the rows."""
        texts = list(zip(rows, sums.tolist(), strict=True))
        return [texts[i : i + group] for i in range(0, len(texts), group)]


def draw(logits_BV: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw a token for each row from its softmax.  Source: Gumbel 1954; the "Gumbel-max trick" """
    return (logits_BV + rng.gumbel(size=logits_BV.shape)).argmax(axis=-1)


class BeamSearch:
    """Beam search: extends the likeliest rows of each sound, and collects those that end.

    Args:  select: called with the rows that the decoder continues, in order
    """

    def __init__(
        self, beam_size: int, patience: float | None, eot: int, select: Callable[[Sequence[int]], None]
    ) -> None:
        self.beam_size = beam_size
        self.enough = round(beam_size * (patience or 1.0))
        self.eot = eot
        self.select = select
        self.ended: list[dict[tuple[int, ...], float]] = []

    def update(self, rows: Rows, logits_BV: Floats, sums: Floats) -> tuple[Rows, bool]:
        """Keep the `beam_size` likeliest rows of each sound, and store those that end."""
        sounds = len(rows) // self.beam_size
        self.ended = self.ended or [{} for _ in range(sounds)]
        log_totals = log_sum_exp(logits_BV)
        if not np.isfinite(log_totals).all():
            raise not_a_number()
        extended: Rows = []
        sources: list[int] = []
        new_sums: list[float] = []
        for sound, ended in enumerate(self.ended):
            first = sound * self.beam_size
            found = self._candidates(range(first, first + self.beam_size), rows, logits_BV, log_totals, sums)
            for text, (score, source) in found:
                if text[-1] != self.eot:
                    extended.append(list(text))
                    sources.append(source)
                    new_sums.append(score)
                    if len(extended) == first + self.beam_size:
                        break
                elif len(ended) < self.enough:
                    ended[text] = score
        sums[:] = new_sums
        self.select(sources)
        return extended, all(len(ended) >= self.enough for ended in self.ended)

    def _candidates(
        self, beams: range, rows: Rows, logits_BV: Floats, log_totals: Floats, sums: Floats
    ) -> list[tuple[tuple[int, ...], tuple[float, int]]]:
        """Return the rows extended by each of their likeliest tokens, likeliest first, without duplicates."""
        found = {}
        for row in beams:
            for token in largest(logits_BV[row], self.beam_size + 1).tolist():
                found[(*rows[row], token)] = (float(sums[row] + (logits_BV[row, token] - log_totals[row])), row)
        return sorted(found.items(), key=lambda item: -item[1][0])

    def has_ended(self, row: list[int]) -> bool:
        """Return False: the other rows of its sound replace a row that ends."""
        return False

    def finish(self, rows: Rows, sums: Floats, group: int) -> list[list[tuple[list[int], float]]]:
        """Return the texts that have ended, completed by the likeliest rows if they are too few."""
        for sound, ended in enumerate(self.ended):
            first = sound * group
            for beam in np.argsort(sums[first : first + group])[::-1].tolist():  # if too few have ended
                if len(ended) >= group:
                    break
                ended[(*rows[first + beam], self.eot)] = float(sums[first + beam])
        return [[(list(text), score) for text, score in ended.items()] for ended in self.ended]


def largest(x_V: Floats, count: int) -> npt.NDArray[np.int64]:
    """Return the indices of the `count` largest elements, in order; the first of equals. Ten times as fast as
    `argpartition`."""
    parts = len(x_V) // PART
    if parts >= count:
        # At least `count` parts have a maximum of `least` or more, so all elements that are wanted are at least that.
        least = np.partition(x_V[: parts * PART].reshape(parts, PART).max(axis=1), parts - count)[parts - count]
        indices = np.flatnonzero(x_V >= least)
    else:
        indices = np.arange(len(x_V))
    return indices[np.argsort(-x_V[indices], kind="stable")[:count]]


def log_sum_exp(logits: Floats) -> Floats:
    """Return log Σ exp of each row."""
    highest, total = kernels.run("sum_exp", logits)
    return highest + np.log(total)


def log_softmax(logits: Floats) -> Floats:
    """Return the log-probabilities of each row."""
    logprobs: Floats = kernels.run("log_softmax", logits)
    return logprobs

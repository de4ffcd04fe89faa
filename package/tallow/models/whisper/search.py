"""Which token comes next: the likeliest, one that is drawn, or those of the likeliest texts.

Letters: B rows, V vocabulary; the rows of one sound, its beams or samples, stand after each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Rows = list[list[int]]


class Choice(Protocol):
    """Chooses the next token of each row.

    `update` returns the rows with one token more, and whether all have ended; it adds the log-probabilities of the
    tokens to `sums`, in place. `finish` returns for each sound its texts and their log-probabilities.
    """

    def update(self, rows: Rows, logits_BV: Floats, sums: Floats) -> tuple[Rows, bool]: ...
    def finish(self, rows: Rows, sums: Floats, group: int) -> list[list[tuple[list[int], float]]]: ...


class Sampling:
    """Each row by itself: the likeliest token, or one that is drawn."""

    def __init__(self, temperature: float, eot: int, rng: np.random.Generator) -> None:
        self.temperature = temperature
        self.eot = eot
        self.rng = rng

    def update(self, rows: Rows, logits_BV: Floats, sums: Floats) -> tuple[Rows, bool]:
        if self.temperature:
            chosen = draw(logits_BV / np.float32(self.temperature), self.rng)
        else:
            chosen = logits_BV.argmax(axis=-1)
        logprobs = log_softmax(logits_BV)
        longer = []
        for i, (row, token) in enumerate(zip(rows, chosen.tolist(), strict=True)):
            if row[-1] == self.eot:
                token = self.eot
            else:
                sums[i] += logprobs[i, token]
            longer.append([*row, token])
        return longer, all(row[-1] == self.eot for row in longer)

    def finish(self, rows: Rows, sums: Floats, group: int) -> list[list[tuple[list[int], float]]]:
        texts = list(zip(rows, sums.tolist(), strict=True))
        return [texts[i : i + group] for i in range(0, len(texts), group)]


def draw(logits_BV: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """One token of each row, with the probabilities of softmax.  Source: Gumbel 1954; the "Gumbel-max trick" """
    return (logits_BV + rng.gumbel(size=logits_BV.shape)).argmax(axis=-1)


class BeamSearch:
    """The likeliest rows of each sound go on; those that end are kept.

    Args:  select: tells the decoder which of its rows go on, in which order
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
        sounds = len(rows) // self.beam_size
        self.ended = self.ended or [{} for _ in range(sounds)]
        logprobs = log_softmax(logits_BV)
        longer: Rows = []
        sources: list[int] = []
        new_sums: list[float] = []
        for sound, ended in enumerate(self.ended):
            first = sound * self.beam_size
            found = self._candidates(range(first, first + self.beam_size), rows, logprobs, sums)
            for text, (score, source) in found:
                if text[-1] != self.eot:
                    longer.append(list(text))
                    sources.append(source)
                    new_sums.append(score)
                    if len(longer) == first + self.beam_size:
                        break
                elif len(ended) < self.enough:
                    ended[text] = score
        sums[:] = new_sums
        self.select(sources)
        return longer, all(len(ended) >= self.enough for ended in self.ended)

    def _candidates(
        self, beams: range, rows: Rows, logprobs: Floats, sums: Floats
    ) -> list[tuple[tuple[int, ...], tuple[float, int]]]:
        """The rows with each of their likeliest tokens, the likeliest first; equal ones once."""
        found = {}
        for row in beams:
            most = np.argpartition(-logprobs[row], self.beam_size)[: self.beam_size + 1]
            for token in most[np.argsort(-logprobs[row, most], kind="stable")].tolist():
                found[(*rows[row], token)] = (float(sums[row] + logprobs[row, token]), row)
        return sorted(found.items(), key=lambda item: -item[1][0])

    def finish(self, rows: Rows, sums: Floats, group: int) -> list[list[tuple[list[int], float]]]:
        for sound, ended in enumerate(self.ended):
            first = sound * group
            for beam in np.argsort(sums[first : first + group])[::-1].tolist():  # too few have ended
                if len(ended) >= group:
                    break
                ended[(*rows[first + beam], self.eot)] = float(sums[first + beam])
        return [[(list(text), score) for text, score in ended.items()] for ended in self.ended]


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

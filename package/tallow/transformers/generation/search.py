"""The loops of `generate`: the likeliest tokens, drawn ones, or beams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tallow.core.tensor import wrap
from tallow.devices import to_host
from tallow.dtypes import Array
from tallow.generation.beam import BeamOptions, Candidate, Hypotheses, log_softmax
from tallow.generation.processors import Logits, Text
from tallow.generation.sampling import Sample, choose
from tallow.random import default_generator
from tallow.transformers.generation.logits_process import process
from tallow.transformers.generation.steps import Steps
from tallow.transformers.generation.stopping_criteria import ending


@dataclass(kw_only=True)
class Records:
    """Values of each step to keep, and those that were kept; the names are those of the results of `generate`."""

    wanted: frozenset[str] = frozenset()
    kept: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, name: str, value: Any) -> None:
        """Keep a value, if it is wanted."""
        if name in self.wanted:
            self.kept.setdefault(name, []).append(value)

    def add_outputs(self, outputs: Any) -> None:
        """Keep what is wanted of the result of `forward`."""
        if outputs is None:
            return
        for name in self.wanted - {"scores", "logits"}:
            self.add(name, outputs.get(name))

    def results(self) -> dict[str, tuple[Any, ...]]:
        """Return what was kept, a tuple for each name."""
        return {name: tuple(self.kept.get(name, ())) for name in self.wanted}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The way to choose tokens.

    Attributes:
        processors: change logits before `sample` sees them.
        warpers: change them for those who look at scores; `sample` does the same by itself.
        closing: change them after all others, and before tokens are chosen.
        sample: chooses tokens from logits; `plain` from scores that `closing` has changed.
        criteria: end texts.
        pad: follows texts that have ended.
        streamer: takes the tokens.
        keeps_rows: texts that have ended stay in the batch.
    """

    processors: Sequence[Any]
    warpers: Sequence[Any]
    closing: Sequence[Any]
    sample: Sample
    plain: Sample
    criteria: Sequence[Any]
    pad: int | None
    streamer: Any = None
    keeps_rows: bool = False
    records: Records = field(default_factory=Records)

    @property
    def changes_draws(self) -> bool:
        """True if something changes scores after the warpers, so that `sample` cannot stand for these."""
        return any(getattr(processor, "decides_draws", False) for processor in self.closing)


def sample_texts(steps: Steps, texts: list[Text], plan: Plan, first: Sequence[Sequence[int]], copies: int) -> None:
    """Extend texts in place, a token at a time, until all have ended.

    Args:
        first: the tokens to read first, a row for every `copies` texts.
    """
    logits_BV = steps.read(first)
    if copies > 1:
        steps.select([row for row in range(len(first)) for _ in range(copies)])
        logits_BV = logits_BV.repeat(copies, 0)
    rows, has_ended = texts, [False] * len(texts)  # of the rows
    while True:
        tokens = _tokens(logits_BV, rows, plan)
        plan.records.add_outputs(steps.outputs)
        if plan.pad is not None and True in has_ended:
            tokens = [plan.pad if ended else token for ended, token in zip(has_ended, tokens, strict=True)]
        for text, token in zip(rows, tokens, strict=True):
            text.append(token)
        if plan.streamer is not None:
            plan.streamer.put(wrap(np.array(tokens, np.int64)))
        ends = ending(plan.criteria, rows, plan.records.kept.get("scores", ()))
        if True in ends:
            has_ended = [a or b for a, b in zip(has_ended, ends, strict=True)]
            if all(has_ended):
                return
            if not plan.keeps_rows:
                places = [place for place, ended in enumerate(has_ended) if not ended]
                steps.select(places)
                rows, tokens = [rows[place] for place in places], [tokens[place] for place in places]
                has_ended = [False] * len(rows)
        logits_BV = steps.read([[token] for token in tokens])


def _tokens(logits_BV: Array, texts: Sequence[Text], plan: Plan) -> list[int]:
    """Return the next token of each text."""
    records = plan.records
    if not records.wanted and not plan.processors and not plan.closing:
        return choose([plan.sample] * len(texts), logits_BV, texts, ())
    host_BV = to_host(logits_BV)
    changed_BV = process(plan.processors, texts, host_BV)
    if plan.changes_draws or "scores" in records.wanted:
        scores_BV = process([*plan.warpers, *plan.closing], texts, changed_BV)
        records.add("scores", wrap(scores_BV))
    records.add("logits", wrap(host_BV))
    if plan.changes_draws:
        return [plan.plain(scores_V, text) for scores_V, text in zip(scores_BV, texts, strict=True)]
    return [plan.sample(scores_V, text) for scores_V, text in zip(changed_BV, texts, strict=True)]


@dataclass(frozen=True, kw_only=True)
class BeamPlan:
    """The options of a search with beams; as in GenerationConfig.

    Attributes:
        end_ids: how many ids end a text.
        longest: the most tokens that follow a prompt.
    """

    num_beams: int
    length_penalty: float
    early_stopping: Any
    end_ids: int
    longest: int
    draws: bool


def beam_texts(
    steps: Steps, prompts: list[Text], plan: Plan, beams: BeamPlan, first: Sequence[Sequence[int]]
) -> list[list[Candidate]]:
    """Return the finished texts of each prompt, best first.

    Args:    first: the tokens to read first, a row for each prompt
    """
    count = beams.num_beams
    options = BeamOptions(
        count,
        beams.longest,
        lambda texts: ending(plan.criteria, texts, plan.records.kept.get("scores", ())),
        max(2, 1 + beams.end_ids) * count,
        beams.length_penalty,
        beams.early_stopping,
        default_generator if beams.draws else None,
    )
    searches = [Hypotheses(prompt, options) for prompt in prompts]
    logits_BV = to_host(steps.read(first))
    if len(first) < len(prompts) * count:  # transformers reads each prompt num_beams times
        logits_BV = logits_BV.repeat(count, 0)
        steps.select([row for row in range(len(prompts)) for _ in range(count)])
    running = [[Candidate(prompt, 0, 0.0)] * count for prompt in prompts]
    while True:
        texts = [candidate.text for group in running for candidate in group]
        scores_BV = process(
            [*plan.processors, *plan.warpers, *plan.closing], texts, np.stack([log_softmax(row) for row in logits_BV])
        )
        _keep(plan.records, steps, logits_BV, scores_BV)
        for search, scores_KV in zip(searches, scores_BV.reshape(len(prompts), count, -1), strict=True):
            if search.running:
                search.extend(scores_KV[: len(search.running)])
        if all(search.is_done for search in searches):
            return [search.finished for search in searches]
        # A prompt with fewer beams, or none, repeats one, whose scores nobody looks at.
        running = [_filled(search.running, old, count) for search, old in zip(searches, running, strict=True)]
        steps.select([i * count + each.row for i, group in enumerate(running) for each in group])
        logits_BV = to_host(steps.read([candidate.text[-1:] for group in running for candidate in group]))


def _keep(records: Records, steps: Steps, logits_BV: Logits, scores_BV: Logits) -> None:
    records.add("scores", wrap(scores_BV))
    records.add("logits", wrap(logits_BV))
    records.add_outputs(steps.outputs)


def _filled(running: list[Candidate], old: list[Candidate], count: int) -> list[Candidate]:
    """Return `count` candidates: those that are running, and others in the place of those that are missing."""
    if not running:
        return [each._replace(row=row, text=each.text.then(each.text[-1])) for row, each in enumerate(old)]
    return running + running[-1:] * (count - len(running))

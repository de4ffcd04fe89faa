"""mine_hard_negatives: texts that are near a query and do not answer it, for training."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallow.errors import ArgumentError
from tallow.sentence_transformers.util.similarity import to_rows

FORMATS = ("triplet", "n-tuple", "labeled-pair", "labeled-list")


def mine_hard_negatives(
    dataset: Sequence[dict[str, Any]],
    model: Any,
    anchor_column_name: str | None = None,
    positive_column_name: str | None = None,
    corpus: Sequence[str] | None = None,
    cross_encoder: Any = None,
    range_min: int = 0,
    range_max: int | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = None,
    num_negatives: int = 3,
    sampling_strategy: str = "top",
    query_prompt_name: str | None = None,
    corpus_prompt_name: str | None = None,
    output_format: str = "triplet",
    batch_size: int = 32,
    verbose: bool = True,
) -> list[dict[str, Any]]:
    """Return samples with negatives: for each query, near texts of the corpus that are none of its positives.

    Args:
        dataset: pairs of a query and a positive. A query may have several.
        model: a SentenceTransformer.
        anchor_column_name, positive_column_name: the first two columns by default.
        corpus: further texts to take negatives from.
        cross_encoder: computes the scores of the candidates anew.
        range_min, range_max: the ranks of candidates, by similarity.
        max_score, min_score: the scores that negatives may have.
        absolute_margin, relative_margin: how far below its positive's score a negative must be: by this much, or
            by this share.
        num_negatives: for each pair; a pair with fewer gives a sample for each in the formats triplet and labeled-pair,
            and none in the others.
        sampling_strategy: the nearest, "top", or "random" ones, by Python's random numbers.
        query_prompt_name, corpus_prompt_name: prompts of the model.
        output_format: "triplet" (anchor, positive, negative), "n-tuple" (negative_1, ...), "labeled-pair" or
            "labeled-list" (with labels 1 and 0).
        batch_size: of the model.
        verbose: print how many negatives there are.

    Raises:  ArgumentError for no samples, and for an unknown format or strategy
    """
    _check(dataset, output_format, sampling_strategy, num_negatives)
    names = list(dataset[0])
    anchor, positive = anchor_column_name or names[0], positive_column_name or names[1]
    pairs = [(str(each[anchor]), str(each[positive])) for each in dataset]
    positives: dict[str, set[str]] = {}
    for query, text in pairs:
        positives.setdefault(query, set()).add(text)
    texts = list(dict.fromkeys([*(corpus or ()), *(text for _, text in pairs)]))
    vectors = to_rows(model.encode(list(positives), query_prompt_name, batch_size=batch_size))
    scores = model.similarity(vectors, model.encode(texts, corpus_prompt_name, batch_size=batch_size)).numpy()
    if range_max is None:
        filters = (absolute_margin, relative_margin, max_score, cross_encoder and min_score)
        wanted = num_negatives * (10 if any(each is not None for each in filters) else 1)
        range_max = range_min + wanted + max(map(len, positives.values()))
    row_of = {query: i for i, query in enumerate(positives)}
    place_of = {text: i for i, text in enumerate(texts)}
    found: list[tuple[str, str, list[str]]] = []
    for query, text in pairs:
        order = [int(i) for i in np.argsort(-scores[row_of[query]], kind="stable")]
        order = order[: range_max + len(positives[query])]
        near = [i for i in order if texts[i] not in positives[query]][range_min:range_max]
        places = [place_of[text], *near]
        own, *values = scores[row_of[query], places].tolist()
        if cross_encoder is not None:
            own, *values = map(float, cross_encoder.predict([(query, texts[i]) for i in places], batch_size))
        highest = _highest(own, max_score, absolute_margin, relative_margin)
        lowest = -math.inf if min_score is None else min_score
        good = [(value, i) for value, i in zip(values, near, strict=True) if lowest <= value <= highest]
        if sampling_strategy == "random":
            good = random.sample(good, min(num_negatives, len(good)))
        best = sorted(good, key=lambda each: -each[0])[:num_negatives]
        found.append((query, text, [texts[i] for _, i in best]))
    if verbose:
        print(f"found {sum(len(each) for _, _, each in found)} negatives for {len(pairs)} pairs")
    return list(_samples(found, anchor, positive, output_format, num_negatives))


def _check(dataset: Sequence[Any], output_format: str, sampling_strategy: str, num_negatives: int) -> None:
    if not len(dataset):
        raise ArgumentError("mine_hard_negatives: there are no samples")
    if output_format not in FORMATS:
        raise ArgumentError(f"output_format={output_format!r:.80}", hint=f"pass one of {', '.join(FORMATS)}")
    if sampling_strategy not in ("top", "random"):
        raise ArgumentError(f"sampling_strategy={sampling_strategy!r:.80}", hint="pass 'top' or 'random'")
    if num_negatives < 1:
        raise ArgumentError(f"num_negatives={num_negatives}; expected 1 or more")


def _highest(own: float, max_score: float | None, absolute: float | None, relative: float | None) -> float:
    """Return the highest score of a negative, by that of its positive."""
    limits = (
        max_score,
        None if absolute is None else own - absolute,
        None if relative is None else own * (1 - relative),
    )
    return min((limit for limit in limits if limit is not None), default=math.inf)


def _samples(
    found: list[tuple[str, str, list[str]]], anchor: str, positive: str, kind: str, count: int
) -> Iterator[dict[str, Any]]:
    for query, text, negatives in found:
        if kind == "triplet":
            yield from ({anchor: query, positive: text, "negative": each} for each in negatives)
        elif kind == "labeled-pair":
            yield {anchor: query, positive: text, "label": 1}
            yield from ({anchor: query, positive: each, "label": 0} for each in negatives)
        elif len(negatives) < count:
            continue
        elif kind == "n-tuple":
            yield {anchor: query, positive: text} | {f"negative_{i}": each for i, each in enumerate(negatives, 1)}
        else:
            yield {anchor: query, positive: [text, *negatives], "labels": [1] + [0] * len(negatives)}

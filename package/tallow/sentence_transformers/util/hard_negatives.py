"""mine_hard_negatives: texts that are near a query and do not answer it, for training."""

from __future__ import annotations

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
    if not len(dataset):
        raise ArgumentError("mine_hard_negatives: there are no samples")
    if output_format not in FORMATS:
        raise ArgumentError(f"output_format={output_format!r:.80}", hint=f"pass one of {', '.join(FORMATS)}")
    if sampling_strategy not in ("top", "random"):
        raise ArgumentError(f"sampling_strategy={sampling_strategy!r:.80}", hint="pass 'top' or 'random'")
    if num_negatives < 1:
        raise ArgumentError(f"num_negatives={num_negatives}; expected 1 or more")
    names = list(dataset[0])
    anchor, positive = anchor_column_name or names[0], positive_column_name or names[1]
    pairs = [(str(each[anchor]), str(each[positive])) for each in dataset]
    positives: dict[str, set[str]] = {}
    for query, text in pairs:
        positives.setdefault(query, set()).add(text)
    texts = list(dict.fromkeys([*(corpus or ()), *(text for _, text in pairs)]))
    queries = list(positives)
    vectors = to_rows(model.encode(queries, query_prompt_name, batch_size=batch_size))
    scores = model.similarity(vectors, model.encode(texts, corpus_prompt_name, batch_size=batch_size)).numpy()
    if range_max is None:
        filters = (absolute_margin, relative_margin, max_score, cross_encoder and min_score)
        wanted = num_negatives * (10 if any(each is not None for each in filters) else 1)
        range_max = range_min + wanted + max(map(len, positives.values()))
    place = {text: i for i, text in enumerate(texts)}
    row_of = {query: i for i, query in enumerate(queries)}
    found: list[tuple[str, str, list[str]]] = []
    for query, text in pairs:
        row = scores[row_of[query]]
        near = [int(i) for i in np.argsort(-row, kind="stable")[: range_max + len(positives[query])]]
        near = [i for i in near if texts[i] not in positives[query]][range_min:range_max]
        if cross_encoder is not None and near:
            again = cross_encoder.predict([(query, texts[i]) for i in (place[text], *near)], batch_size)
            own, values = float(again[0]), [float(each) for each in again[1:]]
        else:
            own, values = float(row[place[text]]), [float(row[i]) for i in near]
        highest = min(
            float("inf") if max_score is None else max_score,
            float("inf") if absolute_margin is None else own - absolute_margin,
            float("inf") if relative_margin is None else own * (1 - relative_margin),
        )
        lowest = float("-inf") if min_score is None else min_score
        good = [(value, i) for value, i in zip(values, near, strict=True) if lowest <= value <= highest]
        if sampling_strategy == "random":
            good = random.sample(good, min(num_negatives, len(good)))
        good = sorted(good, key=lambda each: -each[0])[:num_negatives]
        found.append((query, text, [texts[i] for _, i in good]))
    if verbose:
        print(f"found {sum(len(each) for _, _, each in found)} negatives for {len(pairs)} pairs")
    return list(_samples(found, anchor, positive, output_format, num_negatives))


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

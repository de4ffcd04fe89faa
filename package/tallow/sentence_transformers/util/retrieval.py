"""Search among vectors: the nearest, all similar pairs, and groups."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.sentence_transformers.util.similarity import (
    Score,
    cos_sim,
    dot_score,
    normalize_embeddings,
    to_rows,
    to_tensor,
)
from tallow.tape.modes import no_grad


@no_grad()
def semantic_search(
    query_embeddings: Any,
    corpus_embeddings: Any,
    query_chunk_size: int = 100,
    corpus_chunk_size: int = 500000,
    top_k: int = 10,
    score_function: Score = cos_sim,
) -> list[list[dict[str, Any]]]:
    """Return for each query the nearest of a corpus, the best first: {"corpus_id": ..., "score": ...}.

    Args:
        query_embeddings, corpus_embeddings: vectors (Q, D) or (D,), and (N, D).
        query_chunk_size, corpus_chunk_size: how many to compare at once.
        top_k: how many to return.
        score_function: the similarity.
    """
    queries, corpus = to_rows(query_embeddings), to_rows(corpus_embeddings)
    queries = queries.to(corpus.device)
    if score_function is cos_sim:  # normalize each vector once, not once for each chunk
        queries, corpus, score_function = normalize_embeddings(queries), normalize_embeddings(corpus), dot_score
    results: list[list[dict[str, Any]]] = []
    for start in range(0, len(queries), query_chunk_size):
        chunk = queries[start : start + query_chunk_size]
        values, places = _best(chunk, corpus, corpus_chunk_size, top_k, score_function)
        pairs = zip(places.tolist(), values.tolist(), strict=True)
        results += [
            [{"corpus_id": i, "score": score} for i, score in zip(row, scores, strict=True)] for row, scores in pairs
        ]
    return results


def information_retrieval(*args: Any, **kwargs: Any) -> list[list[dict[str, Any]]]:
    """As `semantic_search`, its former name."""
    return semantic_search(*args, **kwargs)


def _best(queries: Tensor, corpus: Tensor, size: int, count: int, score: Score) -> tuple[Tensor, Tensor]:
    """Return the greatest scores of queries (Q, K), in descending order, and the places in the corpus."""
    values: Tensor | None = None
    places: Tensor | None = None
    for start in range(0, max(len(corpus), 1), size):
        scores = score(queries, corpus[start : start + size])
        found, at = tl.topk(scores, min(count, scores.shape[1]), 1)
        at = at + start
        if values is not None and places is not None:
            found, at = tl.cat([values, found], 1), tl.cat([places, at], 1)
            found, order = tl.topk(found, min(count, found.shape[1]), 1)
            at = at.gather(1, order)
        values, places = found, at
    assert values is not None
    assert places is not None
    return values, places


def paraphrase_mining(
    model: Any,
    sentences: list[str],
    show_progress_bar: bool = False,
    batch_size: int = 32,
    query_chunk_size: int = 5000,
    corpus_chunk_size: int = 100000,
    max_pairs: int = 500000,
    top_k: int = 100,
    score_function: Score = cos_sim,
    truncate_dim: int | None = None,
    prompt_name: str | None = None,
    prompt: str | None = None,
) -> list[list[Any]]:
    """Return the similar pairs among texts: [score, i, j], the best first.

    Args:
        model: a SentenceTransformer, which gets the arguments that `encode` has.
        query_chunk_size, corpus_chunk_size, max_pairs, top_k, score_function: as in `paraphrase_mining_embeddings`.
    """
    embeddings = model.encode(
        sentences,
        show_progress_bar=show_progress_bar,
        batch_size=batch_size,
        convert_to_tensor=True,
        truncate_dim=truncate_dim,
        prompt_name=prompt_name,
        prompt=prompt,
    )
    return paraphrase_mining_embeddings(
        embeddings, query_chunk_size, corpus_chunk_size, max_pairs, top_k, score_function
    )


@no_grad()
def paraphrase_mining_embeddings(
    embeddings: Any,
    query_chunk_size: int = 5000,
    corpus_chunk_size: int = 100000,
    max_pairs: int = 500000,
    top_k: int = 100,
    score_function: Score = cos_sim,
) -> list[list[Any]]:
    """Return the similar pairs among vectors (N, D): [score, i, j] with i < j, the best first.

    Args:
        query_chunk_size, corpus_chunk_size: how many to compare at once.
        max_pairs: how many to return.
        top_k: how many for each vector.
        score_function: the similarity.
    """
    vectors = to_tensor(embeddings)
    best: list[tuple[float, int, int]] = []  # a heap: the worst comes first
    queued: set[tuple[int, int]] = set()
    for start in range(0, len(vectors), query_chunk_size):
        chunk = vectors[start : start + query_chunk_size]
        values, places = _best(chunk, vectors, corpus_chunk_size, top_k + 1, score_function)
        for i, (row, scores) in enumerate(zip(places.tolist(), values.tolist(), strict=True), start):
            others = [(j, score) for j, score in zip(row, scores, strict=True) if j != i][:top_k]
            for j, score in others:
                pair = (min(i, j), max(i, j))
                if pair in queued or (len(best) == max_pairs and score <= best[0][0]):
                    continue
                queued.add(pair)
                heapq.heappush(best, (score, *pair))
                if len(best) > max_pairs:
                    queued.discard(heapq.heappop(best)[1:])
    return [list(each) for each in sorted(best, key=lambda each: -each[0])]


@no_grad()
def community_detection(
    embeddings: Any,
    threshold: float = 0.75,
    min_community_size: int = 10,
    batch_size: int = 1024,
    show_progress_bar: bool = False,
) -> list[list[int]]:
    """Return groups of vectors (N, D) around one each, its center, which comes first; the largest group first.

    Args:
        threshold: the least cosine of a member and the center.
        min_community_size: of the groups to return.
        batch_size: how many to compare at once.
        show_progress_bar: print the progress.
    """
    if len(embeddings) < max(min_community_size, 1):
        return []
    vectors = normalize_embeddings(to_rows(embeddings))
    found: list[tuple[int, Any]] = []
    for start in range(0, len(vectors), batch_size):
        scores = (vectors[start : start + batch_size] @ vectors.T).cpu().numpy()
        counts = (scores >= threshold).sum(1)
        for row in np.flatnonzero(counts >= min_community_size):
            found.append((start + int(row), np.argsort(-scores[row], kind="stable")[: counts[row]]))
        if show_progress_bar:
            print(f"compared {min(start + batch_size, len(vectors))} of {len(vectors)}")
    used = np.zeros(len(vectors), bool)
    communities: list[list[int]] = []
    for center, members in sorted(found, key=lambda each: -len(each[1])):
        left = members[~used[members]]
        if not used[center] and len(left) >= min_community_size:
            communities.append([center, *left[left != center].tolist()])
            used[communities[-1]] = True
    return sorted(communities, key=len, reverse=True)

"""Evaluators: how well the vectors of a SentenceTransformer fit given judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError
from tallow.sentence_transformers.util.retrieval import semantic_search
from tallow.sentence_transformers.util.similarity import FUNCTIONS

Numbers = npt.NDArray[np.float64]


class EmbeddingSimilarityEvaluator:
    """Correlations of the similarities of pairs with given scores: "spearman_cosine", "pearson_cosine".

    Args:
        main_similarity: "cosine", "dot", "euclidean" or "manhattan"; None means the model's.
        name: names of metrics begin with it.
    """

    def __init__(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        scores: Sequence[float],
        main_similarity: str | None = None,
        name: str = "",
        batch_size: int = 16,
    ) -> None:
        if not len(sentences1) == len(sentences2) == len(scores):
            raise ArgumentError("EmbeddingSimilarityEvaluator: texts and scores of different numbers")
        self.sentences1, self.sentences2, self.scores = list(sentences1), list(sentences2), list(scores)
        self.main_similarity, self.name, self.batch_size = main_similarity, name, batch_size
        self.primary_metric = f"{name}_spearman_cosine".lstrip("_")

    def __call__(self, model: Any, output_path: str | None = None) -> dict[str, float]:
        """Return the metrics of a model.

        Args:  output_path: nothing is written.
        """
        del output_path
        first, second = (model.encode(each, batch_size=self.batch_size) for each in (self.sentences1, self.sentences2))
        kind = self.main_similarity or model.similarity_fn_name
        found = FUNCTIONS[kind][1](first, second).numpy().astype(np.float64)
        given = np.asarray(self.scores, np.float64)
        self.primary_metric = f"{self.name}_spearman_{kind}".lstrip("_")
        metrics = {"pearson": correlation(found, given), "spearman": correlation(ranks(found), ranks(given))}
        return {f"{self.name}_{metric}_{kind}".lstrip("_"): value for metric, value in metrics.items()}


class TripletEvaluator:
    """Share of the triplets whose positive is nearer than the negative: "cosine_accuracy".

    Args:  as EmbeddingSimilarityEvaluator
    """

    def __init__(
        self,
        anchors: Sequence[str],
        positives: Sequence[str],
        negatives: Sequence[str],
        main_similarity_function: str | None = None,
        name: str = "",
        batch_size: int = 16,
    ) -> None:
        self.columns = (list(anchors), list(positives), list(negatives))
        self.main_similarity, self.name, self.batch_size = main_similarity_function, name, batch_size
        self.primary_metric = f"{name}_cosine_accuracy".lstrip("_")

    def __call__(self, model: Any, output_path: str | None = None) -> dict[str, float]:
        """Return the metrics of a model.

        Args:  output_path: nothing is written.
        """
        del output_path
        anchors, positives, negatives = (model.encode(each, batch_size=self.batch_size) for each in self.columns)
        kind = self.main_similarity or model.similarity_fn_name
        near, far = (FUNCTIONS[kind][1](anchors, each).numpy() for each in (positives, negatives))
        self.primary_metric = f"{self.name}_{kind}_accuracy".lstrip("_")
        return {self.primary_metric: float((near > far).mean())}


class InformationRetrievalEvaluator:
    """Quality of a search: "cosine_accuracy@1", "cosine_recall@10", "cosine_mrr@10", "cosine_ndcg@10" and so on.

    Args:
        queries, corpus: texts by their names.
        relevant_docs: names of the texts that answer each query.
        accuracy_at_k, precision_recall_at_k, mrr_at_k, ndcg_at_k: how many results count.
        name: names of metrics begin with it.
    """

    def __init__(
        self,
        queries: Mapping[str, str],
        corpus: Mapping[str, str],
        relevant_docs: Mapping[str, Any],
        mrr_at_k: Sequence[int] = (10,),
        ndcg_at_k: Sequence[int] = (10,),
        accuracy_at_k: Sequence[int] = (1, 3, 5, 10),
        precision_recall_at_k: Sequence[int] = (1, 3, 5, 10),
        batch_size: int = 32,
        name: str = "",
    ) -> None:
        self.queries = {key: text for key, text in queries.items() if relevant_docs.get(key)}
        self.corpus, self.relevant = dict(corpus), relevant_docs
        self.at = {"mrr": mrr_at_k, "ndcg": ndcg_at_k, "accuracy": accuracy_at_k, "precision": precision_recall_at_k}
        self.batch_size, self.name = batch_size, name
        self.primary_metric = f"{name}_cosine_ndcg@{max(ndcg_at_k)}".lstrip("_")

    def __call__(self, model: Any, output_path: str | None = None) -> dict[str, float]:
        """Return the metrics of a model.

        Args:  output_path: nothing is written.
        """
        del output_path
        kind = model.similarity_fn_name
        vectors = model.encode_query(list(self.queries.values()), batch_size=self.batch_size, convert_to_tensor=True)
        texts = model.encode_document(list(self.corpus.values()), batch_size=self.batch_size, convert_to_tensor=True)
        most = max(k for sizes in self.at.values() for k in sizes)
        results = semantic_search(vectors, texts, top_k=most, score_function=FUNCTIONS[kind][0])
        names, rows = list(self.corpus), []
        for query, hits in zip(self.queries, results, strict=True):
            relevant = set(self.relevant[query])
            rows.append((np.array([names[hit["corpus_id"]] in relevant for hit in hits]), len(relevant)))
        metrics: dict[str, float] = {}
        metrics |= {f"accuracy@{k}": _mean([hits[:k].any() for hits, _ in rows]) for k in self.at["accuracy"]}
        for k in self.at["precision"]:
            metrics[f"precision@{k}"] = _mean([hits[:k].sum() / k for hits, _ in rows])
            metrics[f"recall@{k}"] = _mean([hits[:k].sum() / count for hits, count in rows])
        metrics |= {
            f"ndcg@{k}": _mean([_gain(hits[:k], min(count, k)) for hits, count in rows]) for k in self.at["ndcg"]
        }
        metrics |= {
            f"mrr@{k}": _mean([1 / (hits[:k].argmax() + 1) if hits[:k].any() else 0 for hits, _ in rows])
            for k in self.at["mrr"]
        }
        self.primary_metric = f"{self.name}_{kind}_ndcg@{max(self.at['ndcg'])}".lstrip("_")
        return {f"{self.name}_{kind}_{metric}".lstrip("_"): value for metric, value in metrics.items()}


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if values else 0.0


def _gain(hits: npt.NDArray[np.bool_], ideal: int) -> float:
    """Return the discounted gain of results, of the greatest that there can be."""
    discounts = 1 / np.log2(np.arange(2, max(len(hits), ideal) + 2))
    return float((hits * discounts[: len(hits)]).sum() / discounts[:ideal].sum())


def correlation(x: Numbers, y: Numbers) -> float:
    """Return Pearson's correlation of two rows of numbers."""
    return float(np.corrcoef(x, y)[0, 1])


def ranks(values: Numbers) -> Numbers:
    """Return the ranks of numbers; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]

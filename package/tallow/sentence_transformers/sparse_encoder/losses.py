"""Losses for training a SparseEncoder, under sentence-transformers' names.

SpladeLoss adds up one of the others and what keeps most weights at 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, warn
from tallow.nn.module import Module
from tallow.sentence_transformers.losses import (
    CoSENTLoss,
    CosineSimilarityLoss,
    Distance,
    DistillKLDivLoss,
    EmbeddingLoss,
    MarginMSELoss,
    MSELoss,
    MultipleNegativesRankingLoss,
    TripletDistanceMetric,
    TripletLoss,
)
from tallow.sentence_transformers.models import Features
from tallow.sentence_transformers.util.similarity import Score, dot_score, pairwise_angle_sim, pairwise_cos_sim


class InsideSpladeLoss(EmbeddingLoss):
    """The base of losses that SpladeLoss takes; alone they would let all weights grow."""

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Raise ArgumentError."""
        del sentence_features, labels
        raise ArgumentError(
            f"{type(self).__name__} is not used alone",
            hint=f"pass SpladeLoss(model, loss={type(self).__name__}(model))",
        )


class SparseMultipleNegativesRankingLoss(InsideSpladeLoss, MultipleNegativesRankingLoss):
    """MultipleNegativesRankingLoss, of dot products.  Args: as MultipleNegativesRankingLoss"""

    def __init__(
        self,
        model: Module,
        scale: float = 1.0,
        similarity_fct: Score = dot_score,
        directions: tuple[str, ...] = ("query_to_doc",),
        partition_mode: str = "joint",
    ) -> None:
        super().__init__(model, scale, similarity_fct, directions, partition_mode)


class SparseMarginMSELoss(InsideSpladeLoss, MarginMSELoss):
    """MarginMSELoss.  Args: as MarginMSELoss"""


class SparseDistillKLDivLoss(InsideSpladeLoss, DistillKLDivLoss):
    """DistillKLDivLoss, with a temperature of 2.  Args: as DistillKLDivLoss"""

    temperature = 2.0


class SparseTripletLoss(InsideSpladeLoss, TripletLoss):
    """TripletLoss.  Args: as TripletLoss"""

    def __init__(
        self, model: Module, distance_metric: Distance = TripletDistanceMetric.EUCLIDEAN, triplet_margin: float = 5
    ) -> None:
        super().__init__(model, distance_metric, triplet_margin)


class SparseCoSENTLoss(InsideSpladeLoss, CoSENTLoss):
    """CoSENTLoss; the model's similarity becomes the cosine.  Args: as CoSENTLoss"""

    def __init__(self, model: Any, scale: float = 20.0, similarity_fct: Score = pairwise_cos_sim) -> None:
        model.similarity_fn_name = "cosine"
        super().__init__(model, scale, similarity_fct)


class SparseAnglELoss(SparseCoSENTLoss):
    """AnglELoss; the model's similarity becomes the cosine."""

    def __init__(self, model: Any, scale: float = 20.0) -> None:
        super().__init__(model, scale, pairwise_angle_sim)


class SparseCosineSimilarityLoss(InsideSpladeLoss, CosineSimilarityLoss):
    """CosineSimilarityLoss; the model's similarity becomes the cosine.  Args: as CosineSimilarityLoss"""

    def __init__(
        self, model: Any, loss_fct: Module | None = None, cos_score_transformation: Module | None = None
    ) -> None:
        model.similarity_fn_name = "cosine"
        super().__init__(model, loss_fct, cos_score_transformation)


class SparseMSELoss(MSELoss):
    """MSELoss.  Args: as MSELoss"""


class FlopsLoss(Module):
    """The sum of the squares of the mean weight of each token, a measure of the work of a search.

    Args:  threshold: texts with at most so many weights do not count; None means that all do

    Source:  Paria et al. 2020, arXiv:2004.05665
    """

    def __init__(self, model: Module, threshold: float | None = None) -> None:
        super().__init__()
        self.model, self.threshold = model, threshold

    def compute_loss_from_embeddings(self, embeddings: Tensor) -> Tensor:
        """Return the loss of the weights (N, V) of texts."""
        if self.threshold is not None:
            counts = (embeddings != 0).sum(1) > self.threshold
            embeddings = embeddings * counts.to(embeddings.dtype).unsqueeze(1)
        return embeddings.mean(0).square().sum()


class SpladeLoss(Module):
    """Adds up a loss of texts and regularizers of their weights.

    Args:
        loss: another loss of this module.
        document_regularizer_weight, query_regularizer_weight: of the regularizers; None leaves out that of queries.
        document_regularizer, query_regularizer: FlopsLoss by default.
        document_regularizer_threshold, query_regularizer_threshold: of FlopsLoss.
        use_document_regularizer_only: the first column is no query, but a text as those of the others.

    Raises:  ArgumentError for a loss without `compute_loss_from_embeddings`

    Source:  Formal et al. 2022, arXiv:2205.04733
    """

    def __init__(
        self,
        model: Module,
        loss: Any,
        document_regularizer_weight: float,
        query_regularizer_weight: float | None = None,
        document_regularizer: Any = None,
        query_regularizer: Any = None,
        document_regularizer_threshold: float | None = None,
        query_regularizer_threshold: float | None = None,
        use_document_regularizer_only: bool = False,
    ) -> None:
        super().__init__()
        if not hasattr(loss, "compute_loss_from_embeddings"):
            raise ArgumentError(f"SpladeLoss: loss is a {type(loss).__name__}", hint="pass a loss of this module")
        if use_document_regularizer_only and query_regularizer_weight is not None:
            warn("query_regularizer_weight has no effect with use_document_regularizer_only=True")
            query_regularizer_weight = None
        self.model, self.loss = model, loss
        self.document_regularizer_weight: float | None = document_regularizer_weight
        self.query_regularizer_weight = query_regularizer_weight
        self.use_document_regularizer_only = use_document_regularizer_only
        self.document_regularizer = document_regularizer or FlopsLoss(model, document_regularizer_threshold)
        self.query_regularizer = query_regularizer or FlopsLoss(model, query_regularizer_threshold)

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> dict[str, Tensor]:
        """Return the parts of the loss of a batch, by their names.

        Args:    sentence_features: of each column; labels: of each row, or None
        """
        vectors = [self.model(dict(features))["sentence_embedding"] for features in sentence_features]
        parts = {"base_loss": self.loss.compute_loss_from_embeddings(vectors, labels)}
        documents = tl.cat(vectors if self.use_document_regularizer_only else vectors[1:])
        found = self.document_regularizer.compute_loss_from_embeddings(documents)
        parts["document_regularizer_loss"] = found * self.document_regularizer_weight
        if self.query_regularizer_weight is not None:
            found = self.query_regularizer.compute_loss_from_embeddings(vectors[0])
            parts["query_regularizer_loss"] = found * self.query_regularizer_weight
        return parts

"""Losses for training a SentenceTransformer, under sentence-transformers' names.

A loss is called with the features of each column of a batch and the labels (B,), or None.
`compute_loss_from_embeddings` takes the vectors (B, D) of each column in place of the features.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, warn
from tallow.nn import functional as F
from tallow.nn import loss as nn_loss
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.sentence_transformers.models import Features
from tallow.sentence_transformers.util.similarity import (
    Score,
    cos_sim,
    normalize_embeddings,
    pairwise_angle_sim,
    pairwise_cos_sim,
    pairwise_dot_score,
)


class EmbeddingLoss(Module):
    """The base of losses that compare the vectors of the columns.

    Args:  model: the SentenceTransformer that is trained
    """

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch.

        Args:    sentence_features: of each column; labels: of each row, or None
        """
        vectors = [self.model(dict(features))["sentence_embedding"] for features in sentence_features]
        return self.compute_loss_from_embeddings(vectors, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return the loss of the vectors of the columns."""
        raise NotImplementedError

    def _labels(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return one label for each row.  Raises: ArgumentError for another number"""
        rows = len(embeddings[0])
        if labels is None or labels.numel() != rows:
            found = "none" if labels is None else str(labels.numel())
            raise ArgumentError(f"{type(self).__name__} needs {rows} labels, one for each row; found {found}")
        return labels.reshape(-1)


class MultipleNegativesRankingLoss(EmbeddingLoss):
    """Ranks the second column's text first among those of all rows, and the texts of further columns.

    Args:
        scale: the similarities are multiplied by it; 1 / temperature.
        similarity_fct: of all pairs.
        directions: which similarities to rank among: "query_to_doc", "doc_to_query", "query_to_query", "doc_to_doc".
        partition_mode: "joint", or "per_direction" for the mean of one ranking for each direction.

    Raises:  ArgumentError for other directions or modes

    Source:  Henderson et al. 2017, arXiv:1705.00652
    """

    def __init__(
        self,
        model: Module,
        scale: float = 20.0,
        similarity_fct: Score = cos_sim,
        directions: tuple[str, ...] = ("query_to_doc",),
        partition_mode: str = "joint",
    ) -> None:
        super().__init__(model)
        known = {"query_to_doc", "doc_to_query", "query_to_query", "doc_to_doc"}
        if "query_to_doc" not in directions or not known.issuperset(directions):
            raise ArgumentError(f"directions={directions}", hint=f"pass 'query_to_doc', and others of {sorted(known)}")
        if partition_mode not in ("joint", "per_direction"):
            raise ArgumentError(f"partition_mode={partition_mode!r:.80}", hint="pass 'joint' or 'per_direction'")
        if partition_mode == "per_direction" and {"query_to_query", "doc_to_doc"} & set(directions):
            raise ArgumentError("partition_mode='per_direction' needs the positive pair in each direction")
        if scale <= 0:
            raise ArgumentError(f"scale={scale}; expected a positive number")
        self.scale, self.similarity_fct = scale, similarity_fct
        self.directions, self.partition_mode = directions, partition_mode

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        if len(embeddings) < 2:
            raise ArgumentError("MultipleNegativesRankingLoss needs two columns or more: queries and texts")
        queries, texts = embeddings[0], tl.cat(embeddings[1:], 0)
        rows, own = len(queries), tl.eye(len(queries), dtype=tl.bool, device=queries.device)
        scores = [self.similarity_fct(queries, texts)]
        if "query_to_query" in self.directions:
            scores.append(self.similarity_fct(queries, queries).masked_fill(own, float("-inf")))
        if "doc_to_query" in self.directions:
            scores.append(self.similarity_fct(queries, embeddings[1]).T)
        if "doc_to_doc" in self.directions:
            same = own.repeat(1, len(embeddings) - 1)
            scores.append(self.similarity_fct(texts, embeddings[1]).T.masked_fill(same, float("-inf")))
        scaled = [each * self.scale for each in scores]
        positive = scaled[0].diagonal()[:rows]
        total: Any
        if self.partition_mode == "joint":
            total = tl.logsumexp(tl.cat(scaled, 1), 1)
        else:
            total = sum(tl.logsumexp(each, 1) for each in scaled) / len(scaled)
        return -(positive - total).mean()


class MultipleNegativesSymmetricRankingLoss(MultipleNegativesRankingLoss):
    """As MultipleNegativesRankingLoss, in both directions: the mean of two rankings."""

    def __init__(self, model: Module, scale: float = 20.0, similarity_fct: Score = cos_sim) -> None:
        super().__init__(model, scale, similarity_fct, ("query_to_doc", "doc_to_query"), "per_direction")


class CosineSimilarityLoss(EmbeddingLoss):
    """Compares the cosine of two columns with the label.

    Args:
        loss_fct: of cosines and labels; MSELoss by default.
        cos_score_transformation: applied to the cosines first.
    """

    def __init__(
        self, model: Module, loss_fct: Module | None = None, cos_score_transformation: Module | None = None
    ) -> None:
        super().__init__(model)
        self.loss_fct = loss_fct or nn_loss.MSELoss()
        self.cos_score_transformation = cos_score_transformation or Identity()

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        found = self.cos_score_transformation(F.cosine_similarity(embeddings[0], embeddings[1]))
        return self.loss_fct(found, self._labels(embeddings, labels).to(found.dtype))


class CoSENTLoss(EmbeddingLoss):
    """Puts the similarities of pairs in the order of their labels.

    Args:
        scale: the similarities are multiplied by it.
        similarity_fct: of each pair.

    Source:  https://kexue.fm/archives/8847, the loss CoSENT
    """

    def __init__(self, model: Module, scale: float = 20.0, similarity_fct: Score = pairwise_cos_sim) -> None:
        super().__init__(model)
        self.scale, self.similarity_fct = scale, similarity_fct

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        given = self._labels(embeddings, labels)
        scores = self.similarity_fct(embeddings[0], embeddings[1]) * self.scale
        differences = scores[:, None] - scores[None, :]
        is_wrong_above = given[:, None] < given[None, :]
        terms = tl.where(is_wrong_above, differences, tl.full_like(differences, float("-inf"))).reshape(-1)
        return tl.logsumexp(tl.cat([terms.new_zeros(1), terms]), 0)


class AnglELoss(CoSENTLoss):
    """As CoSENTLoss, for angles of complex vectors.

    Source:  Li & Li 2023, arXiv:2309.12871
    """

    def __init__(self, model: Module, scale: float = 20.0) -> None:
        super().__init__(model, scale, pairwise_angle_sim)


class SiameseDistanceMetric:
    """Distances of each pair of two columns."""

    EUCLIDEAN = staticmethod(lambda x, y: F.pairwise_distance(x, y, p=2))
    MANHATTAN = staticmethod(lambda x, y: F.pairwise_distance(x, y, p=1))
    COSINE_DISTANCE = staticmethod(lambda x, y: 1 - F.cosine_similarity(x, y))


class TripletDistanceMetric:
    """Distances of each pair of two columns."""

    COSINE = SiameseDistanceMetric.COSINE_DISTANCE
    EUCLIDEAN = SiameseDistanceMetric.EUCLIDEAN
    MANHATTAN = SiameseDistanceMetric.MANHATTAN


Distance = Callable[[Tensor, Tensor], Tensor]


class ContrastiveLoss(EmbeddingLoss):
    """Pulls pairs with label 1 together, and pushes those with label 0 apart, up to a margin.

    Args:  size_average: the mean; False returns the sum

    Source:  Hadsell et al. 2006
    """

    def __init__(
        self,
        model: Module,
        distance_metric: Distance = SiameseDistanceMetric.COSINE_DISTANCE,
        margin: float = 0.5,
        size_average: bool = True,
    ) -> None:
        super().__init__(model)
        self.distance_metric, self.margin, self.size_average = distance_metric, margin, size_average

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        distances = self.distance_metric(embeddings[0], embeddings[1])
        given = self._labels(embeddings, labels).to(distances.dtype)
        losses = (given * distances.square() + (1 - given) * F.relu(self.margin - distances).square()) / 2
        return losses.mean() if self.size_average else losses.sum()


class OnlineContrastiveLoss(EmbeddingLoss):
    """As ContrastiveLoss, the sum over the hard pairs of a batch: far ones with label 1, near ones with label 0."""

    def __init__(
        self, model: Module, distance_metric: Distance = SiameseDistanceMetric.COSINE_DISTANCE, margin: float = 0.5
    ) -> None:
        super().__init__(model)
        self.distance_metric, self.margin = distance_metric, margin

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        distances = self.distance_metric(embeddings[0], embeddings[1])
        given = self._labels(embeddings, labels)
        apart, together = distances[given == 0], distances[given == 1]
        near = apart[apart < (together.max() if len(together) else apart.mean())]
        far = together[together > (apart.min() if len(apart) else together.mean())]
        return far.square().sum() + F.relu(self.margin - near).square().sum()


class TripletLoss(EmbeddingLoss):
    """Wants the second column nearer to the first than the third, by a margin."""

    def __init__(
        self, model: Module, distance_metric: Distance = TripletDistanceMetric.EUCLIDEAN, triplet_margin: float = 5
    ) -> None:
        super().__init__(model)
        self.distance_metric, self.triplet_margin = distance_metric, triplet_margin

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        anchor, positive, negative = embeddings
        near, far = self.distance_metric(anchor, positive), self.distance_metric(anchor, negative)
        return F.relu(near - far + self.triplet_margin).mean()


class SoftmaxLoss(EmbeddingLoss):
    """Classifies pairs by a linear layer over their vectors u and v.

    Args:
        sentence_embedding_dimension: the width of the vectors.
        num_labels: number of classes.
        concatenation_sent_rep, concatenation_sent_difference, concatenation_sent_multiplication: the layer gets
            u and v, |u - v|, u * v.
        loss_fct: of logits and labels; CrossEntropyLoss by default.

    Raises:  ArgumentError for a layer that gets nothing

    Source:  Reimers & Gurevych 2019, arXiv:1908.10084
    """

    def __init__(
        self,
        model: Module,
        sentence_embedding_dimension: int,
        num_labels: int,
        concatenation_sent_rep: bool = True,
        concatenation_sent_difference: bool = True,
        concatenation_sent_multiplication: bool = False,
        loss_fct: Callable[..., Tensor] | None = None,
    ) -> None:
        super().__init__(model)
        self.num_labels = num_labels
        self.concatenation_sent_rep = concatenation_sent_rep
        self.concatenation_sent_difference = concatenation_sent_difference
        self.concatenation_sent_multiplication = concatenation_sent_multiplication
        parts = 2 * concatenation_sent_rep + concatenation_sent_difference + concatenation_sent_multiplication
        if not parts:
            raise ArgumentError("SoftmaxLoss: one of the three concatenations must be True")
        device = next(model.parameters()).device
        self.classifier = Linear(parts * sentence_embedding_dimension, num_labels, device=device)
        self.loss_fct = loss_fct or nn_loss.CrossEntropyLoss()

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        u, v = embeddings
        parts = [u, v] if self.concatenation_sent_rep else []
        parts += [(u - v).abs()] if self.concatenation_sent_difference else []
        parts += [u * v] if self.concatenation_sent_multiplication else []
        return self.loss_fct(self.classifier(tl.cat(parts, 1)), self._labels(embeddings, labels))


class MSELoss(EmbeddingLoss):
    """Mean square of the differences between the vectors and the labels, which are vectors of a teacher (B, D)."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        if labels is None:
            raise ArgumentError("MSELoss needs labels: the vectors of a teacher")
        teachers = [labels] * len(embeddings) if labels.ndim == 2 else list(labels.unbind(1))
        losses = [F.mse_loss(own, other.to(own.dtype)) for own, other in zip(embeddings, teachers, strict=True)]
        return tl.stack(losses).mean()


class MarginMSELoss(EmbeddingLoss):
    """Compares the margin between the second and further columns with that of a teacher.

    The labels are margins (B,) or (B, N), or the teacher's scores of all texts (B, N + 1).

    Args:  similarity_fct: of each pair

    Source:  Hofstätter et al. 2020, arXiv:2010.02666
    """

    def __init__(self, model: Module, similarity_fct: Score = pairwise_dot_score) -> None:
        super().__init__(model)
        self.similarity_fct = similarity_fct

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        query, positive, *negatives = embeddings
        count = len(negatives)
        if labels is not None and labels.shape == (len(query), count + 1):
            labels = labels[:, :1] - labels[:, 1:]
        if labels is None or labels.numel() != len(query) * count:
            raise ArgumentError(f"MarginMSELoss needs {count} or {count + 1} labels for each row")
        score = self.similarity_fct(query, positive)
        margins = tl.stack([score - self.similarity_fct(query, negative) for negative in negatives], 1)
        return F.mse_loss(margins, labels.reshape(margins.shape).to(margins.dtype))


class DistillKLDivLoss(EmbeddingLoss):
    """Compares the softmax of the similarities of further columns with that of a teacher's scores (B, N).

    Args:
        similarity_fct: of each pair.
        temperature: divides similarities and scores; None means 1.
        student_temperature, teacher_temperature: of each of them; None means `temperature`.

    Source:  Lin et al. 2020, arXiv:2010.11386
    """

    temperature = 1.0

    def __init__(
        self,
        model: Module,
        similarity_fct: Score = pairwise_dot_score,
        temperature: float | None = None,
        student_temperature: float | None = None,
        teacher_temperature: float | None = None,
    ) -> None:
        super().__init__(model)
        self.similarity_fct = similarity_fct
        self.temperature = type(self).temperature if temperature is None else temperature
        self.student_temperature = student_temperature or self.temperature
        self.teacher_temperature = teacher_temperature or self.temperature

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        query, *texts = embeddings
        shape = (len(query), len(texts))
        if len(texts) < 2 or labels is None or tuple(labels.shape) != shape:
            raise ArgumentError(f"{type(self).__name__} needs three columns or more, and labels {shape}")
        scores = tl.stack([self.similarity_fct(query, text) for text in texts], 1) / self.student_temperature
        teacher = F.softmax(labels.detach().to(scores.dtype) / self.teacher_temperature, dim=1)
        found = F.kl_div(F.log_softmax(scores, dim=1), teacher, reduction="batchmean")
        return found * self.student_temperature**2


class MatryoshkaLoss(EmbeddingLoss):
    """Sums another loss over the first numbers of the vectors, so that short vectors are useful too.

    Args:
        loss: another loss of this module.
        matryoshka_dims: how many numbers to keep.
        matryoshka_weights: of each; None means 1.
        n_dims_per_step: how many of them to draw for each step; -1 means all.

    Raises:  ArgumentError for no sizes, sizes below 1, and weights of another number

    Source:  Kusupati et al. 2022, arXiv:2205.13147
    """

    def __init__(
        self,
        model: Module,
        loss: EmbeddingLoss,
        matryoshka_dims: Sequence[int],
        matryoshka_weights: Sequence[float] | None = None,
        n_dims_per_step: int = -1,
    ) -> None:
        super().__init__(model)
        weights = [1.0] * len(matryoshka_dims) if matryoshka_weights is None else list(matryoshka_weights)
        if not matryoshka_dims or min(matryoshka_dims) < 1 or len(weights) != len(matryoshka_dims):
            raise ArgumentError(f"matryoshka_dims={matryoshka_dims}, matryoshka_weights={matryoshka_weights}")
        width: Any = getattr(model, "get_embedding_dimension", lambda: None)()
        if width is not None and max(matryoshka_dims) > width:
            raise ArgumentError(f"matryoshka_dims={matryoshka_dims}: the vectors have {width} numbers")
        if width is not None and width not in matryoshka_dims:
            warn(f"matryoshka_dims lack {width}: whole vectors are not trained")
        self.loss, self.n_dims_per_step = loss, n_dims_per_step
        self.sizes = sorted(zip(matryoshka_dims, weights, strict=True), reverse=True)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        drawn = self.sizes
        if 0 < self.n_dims_per_step < len(drawn):
            drawn = sorted(random.sample(drawn, self.n_dims_per_step), reverse=True)
        total = embeddings[0].new_zeros(())
        for size, weight in drawn:
            short = [normalize_embeddings(each[:, :size]) for each in embeddings]
            own = labels
            if labels is not None and labels.ndim > 1 and labels.shape[-1] == embeddings[0].shape[-1]:
                own = labels[..., :size]
            total = total + weight * self.loss.compute_loss_from_embeddings(short, own)
        return total


class BatchAllTripletLoss(EmbeddingLoss):
    """Forms all triplets of a batch of single texts with class labels, and takes the mean of those with a loss.

    Args:  margin: between texts of the same class and others, in distance

    Source:  Hermans et al. 2017, arXiv:1703.07737
    """

    def __init__(self, model: Module, margin: float = 5) -> None:
        super().__init__(model)
        self.triplet_margin = margin

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        given = self._labels(embeddings, labels)
        distances = euclidean_distances(embeddings[0])
        same = given[:, None] == given[None, :]
        pairs = same & ~tl.eye(len(given), dtype=tl.bool, device=given.device)
        losses = distances[:, :, None] - distances[:, None, :] + self.triplet_margin
        losses = F.relu(losses) * (pairs[:, :, None] & ~same[:, None, :]).to(losses.dtype)
        return losses.sum() / ((losses > 1e-16).sum() + 1e-16)


class BatchHardTripletLoss(BatchAllTripletLoss):
    """As BatchAllTripletLoss, of the farthest text of the same class and the nearest of another, for each text."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        given = self._labels(embeddings, labels)
        distances = euclidean_distances(embeddings[0])
        same = given[:, None] == given[None, :]
        pairs = same & ~tl.eye(len(given), dtype=tl.bool, device=given.device)
        farthest = (distances * pairs.to(distances.dtype)).amax(1)
        highest = distances.amax(1, keepdim=True)
        nearest = (distances + highest * same.to(distances.dtype)).amin(1)
        return F.relu(farthest - nearest + self.triplet_margin).mean()


def euclidean_distances(vectors: Tensor) -> Tensor:
    """Return the distances (B, B) of all pairs, with a gradient of 0 where they are 0."""
    products = vectors @ vectors.T
    squares = products.diagonal()
    found = F.relu(squares[None, :] - 2 * products + squares[:, None])
    is_zero = (found == 0).to(found.dtype)
    return (1 - is_zero) * (found + is_zero * 1e-16).sqrt()

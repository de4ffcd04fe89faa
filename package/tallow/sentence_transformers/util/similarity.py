"""Similarities of vectors: of all pairs, (N, D) and (M, D) -> (N, M), and pairwise, (N, D) and (N, D) -> (N,).

Vectors are tensors, arrays, or lists of them. A single vector (D,) counts as one of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.creation import as_tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F

Score = Callable[[Any, Any], Tensor]


def to_tensor(vectors: Any) -> Tensor:
    """Return vectors as a tensor of floats."""
    if isinstance(vectors, list) and vectors and isinstance(vectors[0], Tensor):
        vectors = tl.stack(vectors)
    if isinstance(vectors, list):
        vectors = np.stack([np.asarray(each) for each in vectors]) if vectors else np.zeros((0, 1), np.float32)
    tensor = as_tensor(vectors)
    return tensor if tensor.is_floating_point() else tensor.float()


def to_rows(vectors: Any) -> Tensor:
    """As `to_tensor`, a matrix: a single vector is its row."""
    tensor = to_tensor(vectors)
    return tensor.unsqueeze(0) if tensor.ndim == 1 else tensor


def normalize_embeddings(embeddings: Tensor) -> Tensor:
    """Return vectors scaled to length 1."""
    return F.normalize(embeddings, p=2, dim=-1)


def truncate_embeddings(embeddings: Any, truncate_dim: int | None) -> Any:
    """Return the first `truncate_dim` numbers of vectors; None means all."""
    return embeddings[..., :truncate_dim]


def batch_to_device(batch: dict[str, Any], target_device: Any) -> dict[str, Any]:
    """Move the tensors of a batch to a device, in place, and return the batch."""
    batch |= {name: each.to(target_device) for name, each in batch.items() if isinstance(each, Tensor)}
    return batch


def cos_sim(a: Any, b: Any) -> Tensor:
    """Return the cosines of all pairs."""
    return normalize_embeddings(to_rows(a)) @ normalize_embeddings(to_rows(b)).T


def pytorch_cos_sim(a: Any, b: Any) -> Tensor:
    """As `cos_sim`."""
    return cos_sim(a, b)


def dot_score(a: Any, b: Any) -> Tensor:
    """Return the dot products of all pairs."""
    return to_rows(a) @ to_rows(b).T


def manhattan_sim(a: Any, b: Any) -> Tensor:
    """Return the negative sums of absolute differences of all pairs."""
    return -tl.cdist(to_rows(a), to_rows(b), p=1.0)


def euclidean_sim(a: Any, b: Any) -> Tensor:
    """Return the negative distances of all pairs."""
    return -tl.cdist(to_rows(a), to_rows(b), p=2.0)


def pairwise_cos_sim(a: Any, b: Any) -> Tensor:
    """Return the cosine of each pair."""
    return pairwise_dot_score(normalize_embeddings(to_tensor(a)), normalize_embeddings(to_tensor(b)))


def pairwise_dot_score(a: Any, b: Any) -> Tensor:
    """Return the dot product of each pair."""
    return (to_tensor(a) * to_tensor(b)).sum(-1)


def pairwise_manhattan_sim(a: Any, b: Any) -> Tensor:
    """Return the negative sum of absolute differences of each pair."""
    return -(to_tensor(a) - to_tensor(b)).abs().sum(-1)


def pairwise_euclidean_sim(a: Any, b: Any) -> Tensor:
    """Return the negative distance of each pair."""
    return -(to_tensor(a) - to_tensor(b)).norm(dim=-1)


def pairwise_angle_sim(a: Any, b: Any) -> Tensor:
    """Return the absolute difference in angle of each pair of complex vectors: halves are real and imaginary parts.

    Source:  Li & Li 2023, arXiv:2309.12871
    """
    x, y = (F.pad(each, (0, each.shape[1] % 2)) for each in (to_tensor(a), to_tensor(b)))
    x, y = normalize_embeddings(x), normalize_embeddings(y)
    half = x.shape[1] // 2
    sines = (x[:, half:] * y[:, :half] - x[:, :half] * y[:, half:]).sum(1)
    return ((x * y).sum(1) + sines).abs()


class SimilarityFunction(Enum):
    """The names of similarities."""

    COSINE = "cosine"
    DOT_PRODUCT = "dot"
    DOT = "dot"  # noqa: PIE796 - another name
    EUCLIDEAN = "euclidean"
    MANHATTAN = "manhattan"

    @staticmethod
    def to_similarity_fn(similarity_function: str | SimilarityFunction) -> Score:
        """Return the similarity of all pairs.  Raises: ArgumentError for an unknown name"""
        return FUNCTIONS[named(similarity_function)][0]

    @staticmethod
    def to_similarity_pairwise_fn(similarity_function: str | SimilarityFunction) -> Score:
        """Return the similarity of each pair.  Raises: ArgumentError for an unknown name"""
        return FUNCTIONS[named(similarity_function)][1]

    @staticmethod
    def possible_values() -> list[str]:
        """Return the names."""
        return [member.value for member in SimilarityFunction]


FUNCTIONS: dict[str, tuple[Score, Score]] = {
    "cosine": (cos_sim, pairwise_cos_sim),
    "dot": (dot_score, pairwise_dot_score),
    "euclidean": (euclidean_sim, pairwise_euclidean_sim),
    "manhattan": (manhattan_sim, pairwise_manhattan_sim),
}


def named(name: str | SimilarityFunction) -> str:
    """Return the name of a similarity.  Raises: ArgumentError for an unknown one"""
    name = name.value if isinstance(name, SimilarityFunction) else name
    if name not in FUNCTIONS:
        raise ArgumentError(f"the similarity {name!r:.80} is unknown", hint=f"pass one of {', '.join(FUNCTIONS)}")
    return name

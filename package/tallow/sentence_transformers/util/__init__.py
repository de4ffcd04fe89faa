"""Similarities, search and quantisation of vectors; names are imported at first use."""

from __future__ import annotations

from tallow.lazy_names import names_of

HOMES = {
    "hard_negatives": "mine_hard_negatives",
    "quantization": "quantize_embeddings",
    "retrieval": (
        "community_detection information_retrieval paraphrase_mining paraphrase_mining_embeddings semantic_search"
    ),
    "similarity": (
        "SimilarityFunction cos_sim dot_score euclidean_sim manhattan_sim normalize_embeddings pairwise_angle_sim "
        "pairwise_cos_sim pairwise_dot_score pairwise_euclidean_sim pairwise_manhattan_sim pytorch_cos_sim "
        "truncate_embeddings batch_to_device"
    ),
}
_LAZY = {
    name: f"tallow.sentence_transformers.util.{home}:{name}" for home, names in HOMES.items() for name in names.split()
}
_LAZY |= {home: f"tallow.sentence_transformers.util.{home}" for home in HOMES}

__all__ = list(_LAZY)

__getattr__, __dir__ = names_of(__name__, _LAZY)

"""sentence-transformers' names over tallow's own encoders.

    from tallow.sentence_transformers import SentenceTransformer

    model = SentenceTransformer("sentence-transformers/all-MiniLM-L6-v2")
    vectors = model.encode(["A cat sleeps.", "A kitten naps."])
    model.similarity(vectors, vectors)

Names, arguments, files and results are those of sentence-transformers; the computation is that of
`tallow.models.encoders`. Names are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.lazy_names import names_of

# The modules that define the names.
HOMES = {
    "cross_encoder": "",
    "cross_encoder.model": "CrossEncoder",
    "cross_encoder.trainer": "CrossEncoderTrainer",
    "cross_encoder.training_args": "CrossEncoderTrainingArguments",
    "evaluation": "",
    "losses": "",
    "model": "SentenceTransformer",
    "model_card": "SentenceTransformerModelCardData",
    "models": "",
    "multi_vector": "MultiVectorEncoder",
    "readers": "InputExample",
    "sparse_encoder": "",
    "sparse_encoder.model": "SparseEncoder",
    "sparse_encoder.trainer": "SparseEncoderTrainer",
    "sparse_encoder.training_args": "SparseEncoderTrainingArguments",
    "trainer": "SentenceTransformerTrainer",
    "training_args": "SentenceTransformerTrainingArguments",
    "util": "",
    "util.hard_negatives": "mine_hard_negatives",
    "util.quantization": "quantize_embeddings",
    "util.similarity": "SimilarityFunction",
}
_LAZY = {name: f"tallow.sentence_transformers.{home}:{name}" for home, names in HOMES.items() for name in names.split()}
_LAZY |= {home: f"tallow.sentence_transformers.{home}" for home in HOMES if "." not in home}

__all__ = list(_LAZY)

if TYPE_CHECKING:
    from tallow.signatures.lazy_sentence_transformers import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, _LAZY)
